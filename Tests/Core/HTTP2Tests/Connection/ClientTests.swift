import HTTP2
import Testing

@Suite("A client's connection")
struct ClientTests {
    /// Opens a stream and sends its request.
    private static func request(_ connection: TestConnection, ends: Bool = true) {
        guard let id = connection.open() else {
            Issue.record("there is room")
            return
        }
        let isSent = connection.sendHead(id, ends: ends)
        #expect(isSent)
    }

    @Test func `has one stream until the server's SETTINGS have arrived`() {
        let client = TestConnection(.client, isOpen: false)
        #expect(client.room == 1)
        Self.request(client)
        #expect(client.room == 0)
        #expect(client.open() == nil)
        client.receive(TestConnection.beginning(for: .client))
        #expect(client.room == 99)
    }

    @Test func `opens no more streams than the server and its own limit allow`() {
        let client = TestConnection(.client, limits: HTTP2Limits(streams: 5))
        #expect(client.room == 5)
        client.receive(.settings([(.maxConcurrentStreams, 2)]))
        Self.request(client)
        Self.request(client)
        #expect(client.room == 0 && client.open() == nil)
        client.receive(.settings([(.maxConcurrentStreams, 0)]))
        client.receive(.headers(1))
        #expect(client.room == 0)
        client.receive(.settings([(.maxConcurrentStreams, 100)]))
        #expect(client.room == 4)
    }

    @Test func `gives its streams odd numbers in order`() {
        let client = TestConnection(.client)
        #expect([client.open(), client.open(), client.open()] == [1, 3, 5])
    }

    @Test func `receives heads, content and trailers`() {
        let client = receiving(
            [
                .headers(1, ends: false, [1]), .data(1, [2], ends: false), .data(1, [3]),
                .headers(1, [4]),
            ], as: .client
        ) { Self.request($0) }
        #expect(
            client.seen == [
                .headers(1, [1], ends: false), .data(1, [2, 3], ends: false), .trailers(1, [4]),
            ])
        #expect(client.state(1) == .ended)
    }

    @Test func `receives interim heads before the final one`() {
        let client = TestConnection(.client)
        Self.request(client)
        for head in [1, 2] as [UInt8] {
            client.receive(.headers(1, ends: false, [head]))
            client.machine.interimHead(client[1])
        }
        client.receive(.headers(1, ends: false, [3]), .headers(1, [4]))
        #expect(
            client.seen == [
                .headers(1, [1], ends: false), .headers(1, [2], ends: false),
                .headers(1, [3], ends: false), .trailers(1, [4]),
            ])
    }

    @Test func `refuses content before the final head`() {
        let client = receiving([.data(1, [1])], as: .client) { Self.request($0) }
        #expect(client.seen == [.streamFailed(1, .contentBeforeHead)])
        #expect(client.resets == [1: .protocolError])
        let other = TestConnection(.client)
        Self.request(other)
        other.receive(.headers(1, ends: false))
        other.machine.interimHead(other[1])
        other.receive(.data(1, [1]))
        #expect(other.seen.last == .streamFailed(1, .contentBeforeHead))
    }

    @Test func `accepts no stream of the server's`() {
        expectFailure(.badStreamID, .protocolError, of: .headers(2), as: .client)
        expectFailure(.frameOnIdleStream, .protocolError, of: .headers(1), as: .client)
        expectFailure(.frameOnIdleStream, .protocolError, of: .data(2, [1]), as: .client)
        // Opened, but the request has not been sent.
        expectFailure(.frameOnIdleStream, .protocolError, of: .data(1, [1]), as: .client) {
            _ = $0.open()
        }
    }

    @Test func `frees a stream's place when it is reset`() {
        let client = TestConnection(.client, limits: HTTP2Limits(streams: 1))
        Self.request(client)
        client.reset(1)
        #expect(client.room == 1)
        Self.request(client)
        client.receive(.reset(3, .refusedStream))
        #expect(client.seen == [.reset(3, .refusedStream)])
        #expect(client.room == 1)
    }

    @Test func `opens no more while many have ended and not been released`() {
        let client = TestConnection(.client, limits: HTTP2Limits(streams: 1))
        for id in stride(from: UInt32(1), to: 32, by: 2) {
            #expect(client.room == 1)
            Self.request(client)
            client.reset(id)
        }
        #expect(client.room == 0)
        client.release(1)
        #expect(client.room == 1)
    }

    @Test func `passes over what the server sends on a stream that it has reset`() {
        let client = TestConnection(.client)
        Self.request(client)
        client.reset(1)
        client.release(1)
        client.receive(.headers(1, ends: false, [7]), .data(1, [1]), .headers(1, [8]), .reset(1))
        #expect(client.seen == [.discarded([7]), .discarded([8])])
        #expect(!client.hasFailed)
    }

    @Test func `releases a stream that it has not used`() {
        let client = TestConnection(.client)
        _ = client.open()
        client.release(1)
        #expect(client.sent.isEmpty)
        #expect(client.room == 100)
        Self.request(client)
        client.receive(.headers(3))
        #expect(client.seen == [.headers(3, WireFrame.someBlock, ends: true)])
    }

    @Test func `closes the streams that GOAWAY leaves out, and opens no more`() {
        let client = TestConnection(.client)
        for _ in 0..<3 { Self.request(client) }
        client.receive(.goaway(3))
        #expect(client.seen == [.goaway(3, .noError)])
        #expect(
            [1, 3, 5].map { client.state($0) } == [
                .halfClosedLocal, .halfClosedLocal, .resetByPeer,
            ])
        #expect(client.room == 0 && client.isEnding)
        client.receive(.headers(1), .headers(3))
        #expect(client.seen.count == 3)
        for id in [1, 3] as [UInt32] { client.release(id) }
        #expect(!client.isDone)
        client.release(5)
        #expect(client.isDone)
        #expect(client.resets.isEmpty)
    }

    @Test func `sends content while the response arrives, and stops when it is reset`() {
        let client = TestConnection(.client)
        Self.request(client, ends: false)
        client.receive(.headers(1))
        #expect(client.state(1) == .halfClosedRemote)
        #expect(client.sendable(1) == 16_384)
        let isSent = client.sendData(1, 100)
        client.receive(.reset(1, .noError))
        let isSentAfter = client.sendData(1, 100)
        #expect(isSent && !isSentAfter)
        #expect(client.sendable(1) == 0)
    }

    @Test func `ends at once when it is drained, after its streams`() {
        let client = TestConnection(.client)
        Self.request(client)
        client.drain()
        #expect(client.sent == [.goaway(0)])
        #expect(client.room == 0 && !client.isDone)
        client.receive(.headers(1))
        client.release(1)
        #expect(client.isDone)
    }

    @Test func `gives no number twice`() {
        var client = HTTP2Connection(role: .client, now: 0)
        let beginning = TestConnection.beginning(for: .client)
        _ = client.receive(beginning.span, now: 0)
        // Streams that are released without having been used.
        var last: UInt32 = 0
        for _ in 0..<1000 {
            guard let ref = client.open(now: 0) else { break }
            last = ref.id
            client.released(ref)
        }
        #expect(last == 1999)
        let count = client.streamCount
        #expect(count == 0)
    }
}
