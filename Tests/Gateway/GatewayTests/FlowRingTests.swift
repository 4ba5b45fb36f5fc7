import HTTPCore
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

extension HeldFlow {
    /// An exchange with a head as a client may have sent it.
    init(
        _ head: String = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
        client: UInt32 = 0x7f00_0001, isFailed: Bool = false, exchange: UInt64 = 1,
        session: ClientSession? = nil, notes: FlowNotes = FlowNotes(), extra: Extra = Extra(),
        change: (inout FlowRecord) -> Void = { _ in }
    ) {
        var record = LoggedRequest.record(exchange)
        record.clientAddress = .v4(client)
        if isFailed { record.counted.failure = 3 }
        change(&record)
        let words = head.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        let method = words[0].utf8.count
        let target = words.count > 1 ? words[1].utf8.count : 0
        let bytes = Array(head.utf8)
        self.init(
            record, head: bytes.span,
            texts: FlowTexts(
                method: ByteRange(from: 0, to: method),
                target: ByteRange(from: method + 1, to: method + 1 + target),
                authority: Self.authority(in: head), userAgent: ByteRange(), referer: ByteRange()),
            session: session, notes: notes, extra: extra)
    }
}

extension HeldFlow {
    /// Where the value of Host is.
    private static func authority(in head: String) -> ByteRange {
        let bytes = Array(head.utf8)
        let name = Array("Host: ".utf8)
        guard let at = bytes.indices.first(where: { bytes[$0...].starts(with: name) }) else {
            return ByteRange()
        }
        let start = at + name.count
        let end = bytes[start...].firstIndex(of: 0x0d) ?? bytes.count
        return ByteRange(from: start, to: end)
    }
}

@Suite("Flows: the ring")
struct FlowRingTests {
    @Test func `the latest thousand are held, the newest first`() {
        let ring = FlowRing()
        for number in 1...1500 { ring.hold(HeldFlow(exchange: UInt64(number))) }
        let snapshot = ring.snapshot
        #expect(snapshot.flows.count == FlowRing.capacity)
        #expect(snapshot.flows.first?.record.exchange == 1500)
        #expect(snapshot.flows.last?.record.exchange == 501)
        #expect(snapshot.newest == 1500)
        #expect(snapshot.gaveWay == 500)
    }

    @Test func `whoever holds the most gives way`() {
        let ring = FlowRing()
        for number in 1...20 { ring.hold(HeldFlow(client: 7, exchange: UInt64(number))) }
        for _ in 1...3000 { ring.hold(HeldFlow(client: 8, exchange: 99)) }
        let flows = ring.snapshot.flows
        #expect(flows.count == FlowRing.capacity)
        #expect(flows.count { $0.record.clientAddress == .v4(7) } == 20)
    }

    @Test func `what is served does not drive out what failed`() {
        let ring = FlowRing()
        for number in 1...2000 {
            ring.hold(HeldFlow(isFailed: true, exchange: UInt64(number)))
        }
        #expect(ring.snapshot.flows.count == FlowRing.capacity)
        for _ in 1...2000 { ring.hold(HeldFlow()) }
        let flows = ring.snapshot.flows
        #expect(flows.count == FlowRing.capacity)
        let failed = flows.filter { $0.record.counted.failure != nil }
        #expect(failed.count == FlowRing.failureCapacity)
        #expect(failed.first?.record.exchange == 2000)
    }

    @Test func `what fails does not drive out what is served either`() {
        let ring = FlowRing()
        for _ in 1...2000 { ring.hold(HeldFlow()) }
        for _ in 1...2000 { ring.hold(HeldFlow(isFailed: true)) }
        let served = ring.snapshot.flows.count { $0.record.counted.failure == nil }
        #expect(served == FlowRing.capacity - FlowRing.failureCapacity)
    }

    @Test func `the memory of an exchange is bounded`() {
        let long = String(repeating: "x", count: 100_000)
        let flow = HeldFlow(
            "GET /\(long) HTTP/1.1\r\nX: \(long)\r\n\r\n",
            notes: FlowNotes(
                steps: Array(long.utf8), rule: Array(long.utf8), reported: [long],
                user: Array(long.utf8), way: Array(long.utf8)),
            extra: HeldFlow.Extra(responseHead: Array(long.utf8), detail: Array(long.utf8)))
        #expect(flow.isHeadCut)
        #expect(flow.isResponseHeadCut)
        #expect(flow.head.count == 3072)
        #expect(flow.responseHead.count == 2048)
        #expect(flow.detail.utf8.count == 512)
        for text in [flow.steps, flow.rule, flow.reported, flow.user, flow.way] {
            #expect(text.utf8.count == 256)
        }
        #expect(flow.isTargetCut)
        #expect(flow.targetBytes.count == 3072 - "GET ".utf8.count)
        // What is allocated, not only what is used.
        #expect(flow.textCapacity + MemoryLayout<HeldFlow>.stride < 9 << 10)
    }

    @Test func `each text is found again`() {
        var notes = FlowNotes(
            steps: Array("steps".utf8), rule: Array("rule".utf8), reported: ["one", "two"],
            user: Array("user".utf8), way: Array("way".utf8))
        notes.authority = Array("authority:1".utf8)
        let flow = HeldFlow(
            "PUT /path HTTP/1.1\r\nHost: a\r\n\r\n",
            notes: notes,
            extra: HeldFlow.Extra(
                responseHead: Array("HTTP/1.1 200 OK\r\n".utf8), detail: Array("why".utf8)))
        #expect(flow.methodText == "PUT")
        #expect(String(decoding: flow.targetBytes, as: UTF8.self) == "/path")
        #expect(String(decoding: flow.responseHead, as: UTF8.self) == "HTTP/1.1 200 OK\r\n")
        #expect(flow.detail == "why")
        #expect(flow.subject.isEmpty && flow.tunnel.isEmpty)
        #expect([flow.steps, flow.rule, flow.reported] == ["steps", "rule", "one,two"])
        #expect([flow.user, flow.way, flow.authority] == ["user", "way", "authority:1"])
        #expect(!flow.isHeadCut && !flow.isResponseHeadCut)
    }

    @Test func `it is watched for five minutes after somebody looked`() {
        let ring = FlowRing()
        #expect(!ring.isWatched(at: 1000))
        #expect(ring.watch(at: 1000), "the workers are told")
        #expect(ring.isWatched(at: 1000 + FlowRing.watchMilliseconds - 1))
        #expect(!ring.isWatched(at: 1000 + FlowRing.watchMilliseconds))
        #expect(!ring.watch(at: 2000), "they know")
        #expect(ring.watch(at: 2000 + FlowRing.watchMilliseconds - 100), "they are about to stop")
        #expect(ring.watch(at: 2000 + 3 * FlowRing.watchMilliseconds))
    }

    @Test func `what is new is what is held after a number, the latest first`() {
        let ring = FlowRing()
        for number: UInt64 in 1...10 {
            ring.hold(HeldFlow(isFailed: number.isMultiple(of: 3), exchange: number))
        }
        for known: UInt64 in 0...12 {
            let found = ring.snapshot(after: known)
            let expected = Array((0..<10).reversed().map { $0 + 1 }.filter { $0 > Int(known) })
            #expect(found.flows.map { Int($0.sequence) } == expected)
            #expect(found.newest == 10 && found.held == 10 && found.gaveWay == 0)
        }
        let none = ring.snapshot(after: .max)
        #expect(none.flows.isEmpty && none.newest == 10)
    }

    @Test func `whoever has missed more than is held gets all of it`() {
        let ring = FlowRing()
        for number: UInt64 in 1...3000 { ring.hold(HeldFlow(exchange: number)) }
        for known: UInt64 in [0, 1500, 2000, 2001, 2500] {
            let found = ring.snapshot(after: known)
            #expect(found.flows.count == min(1000, 3000 - Int(known)))
            #expect(found.flows.first?.sequence == 3000)
            #expect(found.gaveWay == 2000)
        }
    }
}

@Suite("Flows: how many are held")
struct HeldExchangesTests {
    private func network(_ address: UInt32) -> IPNetwork { IPNetwork(client: .v4(address)) }

    @Test func `of one client network half of what is held in a second`() {
        var failures = HeldExchanges.failures
        let flood = (0..<1000).count { _ in failures.takes(network(1), at: 5000) }
        #expect(flood == failures.networkLimit)
        // Some networks share the flooding one's part.
        let others = (UInt32(2)...200).count { failures.takes(network($0), at: 5999) }
        #expect(others == failures.limit - failures.networkLimit)
        let another = failures.takes(network(201), at: 5999)
        #expect(!another)
    }

    @Test func `every second has as many again`() {
        var failures = HeldExchanges.failures
        for second: Int64 in [0, 1, 2, 100] {
            let held = (0..<100).count { _ in failures.takes(network(7), at: second * 1000 + 999) }
            #expect(held == failures.networkLimit)
        }
    }

    @Test func `nobody's network is determined once the second is full`() {
        var failures = HeldExchanges.failures
        for number: UInt32 in 0..<10_000 { _ = failures.takes(network(number), at: 0) }
        var isAsked = false
        func asked() -> IPNetwork {
            isAsked = true
            return network(1)
        }
        let another = failures.takes(asked(), at: 1)
        #expect(!another && !isAsked)
    }

    @Test(arguments: [1, 2, 3, 8, 64])
    func `what is watched is spread over the second and the workers`(workers: Int) {
        var worker = HeldExchanges.watched(workers: workers)
        var held: [Int] = []
        for quarter in 0..<8 {
            let moments = (0..<250).map { Int64(quarter * 250 + $0) }
            held.append(
                moments.count { moment in
                    worker.takes(network(UInt32(moment)), at: moment)
                })
        }
        #expect(Set(held) == [max(4, HeldExchanges.watchedPerSecond / 4 / workers)])
    }

    @Test func `of what is watched a quarter is left for other client networks`() {
        var worker = HeldExchanges.watched(workers: 2)
        let flood = (0..<1000).count { _ in worker.takes(network(1), at: 0) }
        let others = (UInt32(2)...200).count { worker.takes(network($0), at: 1) }
        #expect(flood == worker.networkLimit)
        #expect(flood + others == worker.limit)
        #expect(others * 4 >= worker.limit - 3 && others > 0)
    }
}
