import CLinux
import COpenSSL
import PinfoldTLS
import Testing
import Trust

@Suite("Reading and writing")
struct TransferTests {
    /// Bytes that depend on their position.
    static func pattern(_ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    }

    /// Runs a client against a server that answers one request, and ends it before the server.
    func withClient(
        _ behaviour: TestServer.Behaviour, _ body: (TestClient) throws -> Void
    ) throws -> [TestServer.Record] {
        let server = TestServer([PKI.direct], behaviour)
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.handshake() == nil)
            try body(client)
        }
        return server.records()
    }

    @Test func `a session that the server ends is a clean end, as often as it is read`() throws {
        _ = try withClient(.respond(Self.pattern(100))) { client in
            #expect(client.write([1]))
            let all = client.readAll()
            #expect(all.bytes == Self.pattern(100))
            #expect(all.end == .endOfStream)
            #expect(client.read(10).result == .endOfStream)
            #expect(client.connection.failure == nil)
            #expect(client.connection.shutdown())
        }
    }

    @Test
    func `a connection that ends without the session's end is truncated, after its bytes`() throws {
        _ = try withClient(.truncate(Self.pattern(50_000))) { client in
            #expect(client.write([1]))
            let all = client.readAll()
            #expect(all.bytes == Self.pattern(50_000))
            #expect(all.end == .truncated)
            #expect(client.read(10).result == .truncated)
            #expect(client.connection.failure == .truncated)
        }
    }

    @Test func `a reset is a failure with its errno, and raises no signal`() throws {
        _ = try withClient(.reset(Self.pattern(10))) { client in
            #expect(client.write([1]))
            #expect(client.readWhenReady(100).bytes == Self.pattern(10))
            #expect(client.write([2]))
            #expect(client.readAll().end == .failed)
            #expect(client.connection.failure == .transport(errorNumber: ECONNRESET))
            #expect(!client.write([3]))
        }
        // The first write to a connection that the peer has closed provokes the reset, and the next
        // one would raise SIGPIPE.
        _ = try withClient(.hangUpAfterHandshake) { client in
            #expect(client.readAll().end == .truncated)
        }
    }

    @Test func `a write to a closed connection fails without a signal`() throws {
        let server = TestServer([PKI.direct], .hangUpAfterHandshake)
        let client = try TestClient(.make(), port: server.port)
        #expect(client.handshake() == nil)
        _ = server.records()
        // The kernel learns from the reset caused by one write that the next must fail.
        var writes = 0
        while writes < 1000, client.write(Self.pattern(1000)) {
            writes += 1
            guard client.waitUntil(POLLOUT) else { break }
        }
        #expect(writes < 1000)
        #expect(client.readAll().end == .failed)
        let expected: [TLSError] = [
            .transport(errorNumber: EPIPE), .transport(errorNumber: ECONNRESET),
        ]
        #expect(client.connection.failure.map(expected.contains) == true)
    }

    @Test
    func `a read that fills the buffer reports whether the socket is known to be empty`() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.read(10).result == .wantRead)
            #expect(client.write([1]))
            let first = client.readWhenReady(60)
            #expect(first.result == .bytes(60, drained: false))
            #expect(first.bytes == Array(Self.pattern(100).prefix(60)))
            #expect(client.connection.pendingBytes == 40)
            let second = client.read(60)
            #expect(second.result == .bytes(40, drained: true))
            #expect(second.bytes == Array(Self.pattern(100).suffix(40)))
            #expect(client.connection.pendingBytes == 0)
            #expect(client.read(60).result == .wantRead)
        }
    }

    @Test
    func `a read that ends exactly with the bytes leaves open whether there are more`() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.write([1]))
            #expect(client.readWhenReady(100).result == .bytes(100, drained: false))
            #expect(client.read(100).result == .wantRead)
        }
    }

    @Test
    func `a short receive is proof that the socket is empty, when the caller trusts it`() throws {
        _ = try withClient(.hold(Self.pattern(100))) { client in
            #expect(client.write([1]))
            let first = client.readWhenReady(10, trustsShortReceive: true)
            #expect(first.result == .bytes(10, drained: false))
            #expect(client.read(100, trustsShortReceive: true).result == .bytes(90, drained: true))
            #expect(client.read(1, trustsShortReceive: true).result == .wantRead)
        }
    }

    @Test(arguments: [1_000, 16_384, 100_000], [false, true])
    func `a long response arrives whole whatever the buffer, and its end with it`(
        _ capacity: Int, _ trustsShortReceive: Bool
    ) throws {
        let response = Self.pattern(600_001)
        _ = try withClient(.respond(response)) { client in
            #expect(client.write([1]))
            let all = client.readAll(capacity: capacity, trustsShortReceive: trustsShortReceive)
            #expect(all.bytes == response)
            #expect(all.end == .endOfStream)
        }
    }

    @Test func `an empty buffer and an empty write do nothing`() throws {
        _ = try withClient(.respond([1])) { client in
            let nothing = UnsafeMutableRawBufferPointer(start: nil, count: 0)
            #expect(client.connection.read(into: nothing) == .bytes(0, drained: false))
            #expect(client.connection.write(UnsafeRawBufferPointer(nothing)) == .bytes(0))
            #expect(client.write([1]))
            #expect(client.readAll().bytes == [1])
        }
    }

    @Test func `a write stops when the socket is full and continues from another address`() throws {
        let gate = Gate()
        let request = Self.pattern(2_000_000)
        let records = try withClient(.echo(request.count, start: gate)) { client in
            client.limitBuffers(to: 64 * 1024)
            var taken = 0
            var isFilled = false
            while !isFilled {
                let result = request[taken...].withUnsafeBytes { client.connection.write($0) }
                switch result {
                case .bytes(let count): taken += count
                case .wantWrite: isFilled = true
                case .wantRead, .failed:
                    Issue.record("unexpected \(result)")
                    return
                }
            }
            #expect(taken < request.count)
            gate.open()
            // A copy: the rest comes from another address.
            #expect(client.write(Array(request[taken...])))
            let all = client.readAll(capacity: 65_536)
            #expect(all.bytes == request)
            #expect(all.end == .endOfStream)
        }
        #expect(records.map(\.request.count) == [request.count])
        #expect(records.map { $0.request == request } == [true])
    }

    @Test func `ending the session notifies the server, and a broken one sends nothing`() throws {
        let records = try withClient(.hold([1])) { client in
            #expect(client.write([7]))
            #expect(client.readWhenReady(10).bytes == [1])
            #expect(client.connection.shutdown())
            #expect(client.connection.shutdown())
            #expect(client.connection.failure == nil)
        }
        #expect(records.map(\.hasEndedCleanly) == [true])
        let abrupt = try withClient(.hold([1])) { client in
            #expect(client.write([7]))
        }
        #expect(abrupt.map(\.hasEndedCleanly) == [false])
    }

    @Test func `a session that has not been opened has nothing to end`() throws {
        let server = TestServer([PKI.direct])
        do {
            let client = try TestClient(.make(), port: server.port)
            #expect(client.connection.shutdown())
        }
        #expect(server.records().allSatisfy { !$0.isEstablished })
    }

    /// The poller's edge for the late bytes arrived before the records that were read earlier are
    /// consumed: if the socket were reported empty then, it would not be read again.
    @Test(arguments: [65, 100, 128, 129])
    func `an empty socket is one that was seen empty by this very read`(records: Int) throws {
        let pair = try Pair()
        #expect(pair.opens())
        for _ in 0..<records { #expect(pair.client.write("a") == .bytes(1)) }
        var buffer = [UInt8](repeating: 0, count: 1000)
        func read() -> TLSReadResult {
            buffer.withUnsafeMutableBytes { pair.server.read(into: $0, trustsShortReceive: true) }
        }
        #expect(read() == .bytes(64, drained: false))
        var bytes = 64
        for _ in 0..<70 { #expect(pair.client.write("b") == .bytes(1)) }
        reading: while true {
            switch read() {
            case .bytes(let count, let drained):
                bytes += count
                if drained { break reading }
            case .turnIsOver: continue
            default: break reading
            }
        }
        #expect(bytes == records + 70)
    }
}
