import HTTPCore
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Flows: the queue")
struct FlowQueueTests {
    /// A ring that is freed at the end.
    private final class Owned: Sendable {
        let ring: FlowQueue

        init(queueBytes: Int = 0, change: (inout FlowQueueLimits) -> Void = { _ in }) {
            var limits = FlowQueueLimits()
            limits.queueBytes = queueBytes
            change(&limits)
            ring = FlowQueue(limits: limits)
        }

        deinit { ring.deallocate() }

        func push(_ exchange: UInt64, _ request: LoggedRequest = LoggedRequest())
            -> FlowQueue.Push
        {
            let (bytes, texts) = request.head
            return ring.push(LoggedRequest.record(exchange), head: bytes.span, texts)
        }

        func take() -> [UInt64] {
            var taken: [UInt64] = []
            _ = ring.drain(upTo: ring.headPosition) { entry in
                taken.append(entry.record.exchange)
                return true
            }
            return taken
        }
    }

    private func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    @Test func `a record is read as it was written, with its texts`() {
        let owned = Owned()
        let request = LoggedRequest(
            method: "PATCH", target: "/t", userAgent: "agent", referer: "ref")
        var record = LoggedRequest.record(7)
        record.counted.failure = 3
        record.counted.responseBytes = .max
        record.upstreamAddress = .v6(1, 2)
        let (bytes, texts) = request.head
        #expect(owned.ring.push(record, head: bytes.span, texts) == .queued)
        var count = 0
        let isDrained = owned.ring.drain(upTo: owned.ring.headPosition) { entry in
            count += 1
            #expect(entry.record.exchange == 7)
            #expect(entry.record.counted.failure == 3)
            #expect(entry.record.counted.responseBytes == .max)
            #expect(entry.record.upstreamAddress == .v6(1, 2))
            #expect(entry.record.version == .http11)
            #expect(text(entry.method) == "PATCH")
            #expect(text(entry.target) == "/t")
            #expect(text(entry.userAgent) == "agent")
            #expect(text(entry.referer) == "ref")
            return true
        }
        #expect(isDrained)
        #expect(count == 1)
        #expect(owned.ring.isEmpty)
    }

    @Test(arguments: [0, 1, 13, 300, 4000])
    func `records are read in order, many times around the ring`(targetBytes: Int) {
        let owned = Owned()
        var next: UInt64 = 0
        var expected: UInt64 = 0
        for round in 0..<400 {
            for step in 0..<(round % 7) {
                let target = String(repeating: "x", count: targetBytes + step)
                #expect(owned.push(next, LoggedRequest(target: target)) != .refused)
                next += 1
            }
            for exchange in owned.take() {
                #expect(exchange == expected)
                expected += 1
            }
        }
        #expect(expected == next)
        #expect(owned.ring.pushed == next)
        #expect(owned.ring.refused == 0)
    }

    @Test func `a full ring refuses and counts, and accepts again when there is room`() {
        let owned = Owned()
        var queued: UInt64 = 0
        while owned.push(queued) != .refused { queued += 1 }
        #expect(owned.push(queued) == .refused)
        #expect(owned.ring.refused == 2)
        #expect(owned.ring.pushed == queued)
        #expect(owned.take() == Array(0..<queued))
        #expect(owned.push(9) != .refused)
        #expect(owned.take() == [9])
    }

    @Test
    func `the consumer is urged once when the ring is more than half full, and again later`() {
        let owned = Owned()
        for _ in 0..<3 {
            var results: [FlowQueue.Push] = []
            while results.last != .refused { results.append(owned.push(1)) }
            #expect(results.count { $0 == .queuedHalfFull } == 1)
            let place = results.firstIndex(of: .queuedHalfFull) ?? 0
            #expect(abs(place - results.count / 2) <= results.count / 16)
            _ = owned.take()
            // The producer notices the space with its next record.
            #expect(owned.push(1) == .queued)
            _ = owned.take()
        }
    }

    @Test func `a consumer that stops keeps the rest for the next time`() {
        let owned = Owned()
        for exchange in 0..<5 { _ = owned.push(UInt64(exchange)) }
        let end = owned.ring.headPosition
        var taken: [UInt64] = []
        let isDrained = owned.ring.drain(upTo: end) { entry in
            taken.append(entry.record.exchange)
            return taken.count < 2
        }
        #expect(!isDrained)
        #expect(taken == [0, 1])
        #expect(owned.take() == [2, 3, 4])
    }

    @Test func `what was queued after the looked-at position stays queued`() {
        let owned = Owned()
        _ = owned.push(0)
        let end = owned.ring.headPosition
        _ = owned.push(1)
        var taken: [UInt64] = []
        let isDrained = owned.ring.drain(upTo: end) { entry in
            taken.append(entry.record.exchange)
            return true
        }
        #expect(isDrained)
        #expect(taken == [0])
        #expect(owned.take() == [1])
    }

    @Test func `texts at their limit are whole, one byte more is cut off`() {
        let owned = Owned { limits in
            limits.methodBytes = 3
            limits.targetBytes = 5
            limits.userAgentBytes = 0
            limits.refererBytes = 2
        }
        _ = owned.push(
            1, LoggedRequest(method: "GET", target: "/1234", userAgent: "a", referer: "rr"))
        _ = owned.push(
            2, LoggedRequest(method: "PUTS", target: "/12345", userAgent: "", referer: "rrr"))
        _ = owned.ring.drain(upTo: owned.ring.headPosition) { entry in
            #expect(entry.method.count == 3)
            #expect(text(entry.target) == "/1234")
            #expect(entry.userAgent.count == 0)
            #expect(text(entry.referer) == "rr")
            return true
        }
    }

    @Test func `however large the limits, an entry stays within its bound`() {
        let owned = Owned { limits in
            limits.targetBytes = .max
            limits.userAgentBytes = .max
        }
        let long = String(repeating: "t", count: 60_000)
        #expect(owned.push(1, LoggedRequest(target: long, userAgent: "agent")) != .refused)
        _ = owned.ring.drain(upTo: owned.ring.headPosition) { entry in
            let limit = FlowQueue.maximumTextBytes - entry.method.count
            #expect(entry.target.count == limit)
            #expect(entry.userAgent.count == 0)
            return true
        }
    }

    @Test func `ranges outside the head are cut to what is inside`() {
        let owned = Owned()
        let bytes = Array("0123".utf8)
        let texts = FlowTexts(
            method: ByteRange(start: 2, count: 9), target: ByteRange(start: 4, count: 1),
            userAgent: ByteRange(start: 400, count: 1),
            referer: ByteRange(start: .max, count: .max))
        _ = owned.ring.push(LoggedRequest.record(), head: bytes.span, texts)
        _ = owned.ring.push(LoggedRequest.record(), head: [UInt8]().span, texts)
        var methods: [String] = []
        _ = owned.ring.drain(upTo: owned.ring.headPosition) { entry in
            methods.append(text(entry.method))
            #expect(entry.target.isEmpty && entry.userAgent.isEmpty && entry.referer.isEmpty)
            return true
        }
        #expect(methods == ["23", ""])
    }

    @Test func `the capacity is a power of two between its bounds`() {
        for (asked, expected) in [
            (Int.min, 1 << 16), (0, 1 << 16), (1 << 16, 1 << 16), ((1 << 16) + 1, 1 << 17),
            (1 << 20, 1 << 20),
        ] {
            #expect(Owned(queueBytes: asked).ring.capacity == expected)
        }
    }

    @Test func `a producer and a consumer on two threads lose and reorder nothing`() async {
        let owned = Owned()
        let count: UInt64 = 30_000
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for exchange in 0..<count {
                    let target = String(repeating: "a", count: Int(exchange % 97))
                    while owned.push(exchange, LoggedRequest(target: target)) == .refused {
                        await Task.yield()
                    }
                }
            }
            group.addTask {
                var expected: UInt64 = 0
                while expected < count {
                    _ = owned.ring.drain(upTo: owned.ring.headPosition) { entry in
                        #expect(entry.record.exchange == expected)
                        #expect(entry.target.count == Int(expected % 97))
                        #expect(entry.target.allSatisfy { $0 == UInt8(ascii: "a") })
                        expected += 1
                        return true
                    }
                    await Task.yield()
                }
            }
        }
        #expect(owned.ring.pushed == count)
    }
}
