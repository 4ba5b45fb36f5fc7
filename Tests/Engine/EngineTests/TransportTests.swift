import CLinux
import EngineTestSupport
import EventLoop
import PinfoldTLS
import Testing

@testable import PinfoldEngine

@Suite("Transports")
struct TransportTests {
    /// Two ends over TLS whose handshakes are done: the server's, and the client's.
    private func open(on loop: EventLoop) throws -> (near: FarEnd, far: FarEnd) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        try #require(socketpair(AF_UNIX, type, 0, &ends) == 0)
        let (near, far) = (FarEnd(try .server(ends[0])), FarEnd(try .client(ends[1])))
        for _ in 0..<20 where !near.isOpen || !far.isOpen {
            far.advance(on: loop)
            near.advance(on: loop)
        }
        try #require(near.isOpen && far.isOpen)
        return (near, far)
    }

    @Test func `a transport has its security and its version`() throws {
        let (near, far) = try open(on: try EventLoop())
        #expect(near.transport.isSecure)
        #expect(near.transport.version == .tls13)
        #expect(far.transport.version == .tls13)
        let clear = Transport(descriptor: -1)
        #expect(!clear.isSecure)
        #expect(clear.version == nil)
        #expect(clear.handshake() == .complete)
    }

    @Test func `a head and a short body are one record`() throws {
        let loop = try EventLoop()
        let (near, far) = try open(on: loop)
        let (head, body) = ([UInt8](repeating: 1, count: 300), [UInt8](repeating: 2, count: 1000))
        near.send(head)
        near.send(body)
        near.advance(on: loop)
        far.advance(on: loop)
        #expect(far.received == head + body)
        near.send(head)
        near.send(body)
        near.advance(on: loop)
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = recv(far.transport.descriptor, &bytes, bytes.count, Int32(MSG_PEEK))
        // The header, the type of the content, and the tag (RFC 8446 §5.2).
        #expect(count == 300 + 1000 + 5 + 1 + 16)
    }

    @Test func `runs of every kind and size arrive in order, through a full socket`() throws {
        let loop = try EventLoop()
        let (near, far) = try open(on: loop)
        let file = try PatternFile(count: 300_000)
        var (queue, budget) = (OutputQueue(), TurnBudget())
        var expected: [UInt8] = []
        let source = file.bytes
        source.withUnsafeBytes { memory in
            for (index, size) in [5, 70_000, 2, 16_384, 16_383, 1, 200_000, 3, 4].enumerated() {
                let part = UnsafeRawBufferPointer(rebasing: memory[index..<(index + size)])
                queue.append(part, owner: nil)
                expected += part
                let isFile = index % 3 == 1
                guard isFile else { continue }
                queue.append(
                    file: file.descriptor, offset: size % 1000, count: 100_000, owner: file)
                expected += file.bytes[(size % 1000)..<(size % 1000 + 100_000)]
            }
            var blocked = 0
            for _ in 0..<10_000 where !queue.isEmpty {
                switch near.transport.flush(&queue, on: loop, spending: &budget) {
                case .blocked: blocked += 1
                case .drained, .turnIsOver: break
                case .failed(let error): Issue.record("\(error)")
                }
                far.advance(on: loop)
            }
            #expect(blocked > 0)
        }
        #expect(far.received == expected)
    }

    @Test func `a turn's share is charged for what is encrypted`() throws {
        let loop = try EventLoop()
        let (near, far) = try open(on: loop)
        let file = try PatternFile(count: 100_000)
        var (queue, budget) = (OutputQueue(), TurnBudget())
        // Small runs of a file: each is a write of its own.
        for index in 0..<2000 {
            queue.append(file: file.descriptor, offset: index, count: 10, owner: file)
        }
        loop.turn(waitingAtMost: 0)
        #expect(near.transport.flush(&queue, on: loop, spending: &budget) == .turnIsOver)
        #expect(budget.isSpent)
        let left = queue.pendingBytes
        #expect(near.transport.flush(&queue, on: loop, spending: &budget) == .turnIsOver)
        #expect(queue.pendingBytes == left - 10, "one write is always made")
        for _ in 0..<1000 where !queue.isEmpty {
            loop.turn(waitingAtMost: 0)
            _ = near.transport.flush(&queue, on: loop, spending: &budget)
            far.advance(on: loop)
        }
        #expect(far.received.count == 20_000)
    }

    @Test func `a file that is shorter than announced is a failure`() throws {
        let loop = try EventLoop()
        let (near, _) = try open(on: loop)
        let file = try PatternFile(count: 100)
        var (queue, budget) = (OutputQueue(), TurnBudget())
        queue.append(file: file.descriptor, offset: 50, count: 51, owner: file)
        #expect(
            near.transport.flush(&queue, on: loop, spending: &budget) == .failed(.inputOutput))
    }

    @Test func `errors distinguish the socket from the session`() throws {
        let loop = try EventLoop()
        let (near, far) = try open(on: loop)
        far.close()
        far.advance(on: loop)
        near.advance(on: loop)
        #expect(near.end == .truncated)
        let faults: [(TransportError, ExchangeError)] = [
            (.reset(.connectionReset), .upstreamReset(.connectionReset)),
            (.tls(.notTLS), .tlsFailed(.notTLS)), (.closed, .server(.upstreamClosed)),
        ]
        for (error, fault) in faults {
            #expect(ExchangeError(upstream: error).explanation == fault.explanation)
        }
    }
}
