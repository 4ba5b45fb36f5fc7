import HTTP2
import Testing

@Suite("The end of a connection")
struct EndingTests {
    @Test func `comes in two steps, so that no request on its way is lost`() throws {
        let server = TestConnection()
        server.receive(.headers(1))
        server.drain()
        #expect(server.goaways.map { $0.number(at: 0) } == [0x7FFF_FFFF])
        let ping = try #require(server.sent.last { $0.type == .ping })
        // It was on its way.
        server.receive(.headers(3))
        #expect(server.streams[3] != nil)
        server.receive(.ping(ping.payload, ack: true))
        #expect(server.goaways.map { $0.number(at: 0) } == [0x7FFF_FFFF, 3])
        #expect(server.goaways.allSatisfy { $0.code == .noError })
        #expect(!server.isDone)
        server.respond(1)
        server.respond(3)
        #expect(server.isDone)
        #expect(!server.hasFailed)
    }

    @Test func `has a second step even if PING is not answered`() {
        let server = TestConnection()
        server.drain()
        let next = server.check()
        #expect(next == server.now + 10_000)
        server.now += 10_000
        _ = server.check()
        #expect(server.goaways.map { $0.number(at: 0) } == [0x7FFF_FFFF, 0])
        #expect(server.isDone)
    }

    @Test func `passes over all frames of later streams`() throws {
        let server = TestConnection()
        server.receive(.headers(1))
        server.drain()
        let ping = try #require(server.sent.last { $0.type == .ping })
        server.receive(.ping(ping.payload, ack: true))
        server.sent = []
        server.receive(
            .headers(3, ends: false, [3]), .data(3, count: 100), .windowUpdate(3, 1),
            .headers(3, [4]), .reset(3), .headers(5, [5]))
        #expect(server.seen.suffix(3) == [.discarded([3]), .discarded([4]), .discarded([5])])
        #expect(server.sent.isEmpty)
        // The stream that was accepted goes on.
        server.respond(1)
        #expect(server.isDone)
    }

    @Test func `is announced once`() throws {
        let server = TestConnection()
        server.drain()
        server.drain()
        let ping = try #require(server.sent.last { $0.type == .ping })
        server.receive(.ping(ping.payload, ack: true), .ping(ping.payload, ack: true))
        server.drain()
        #expect(server.goaways.count == 2)
        #expect(server.sent.count == 3)
    }

    @Test func `by an error after GOAWAY does not name a later stream`() {
        let server = TestConnection()
        server.receive(.headers(1))
        server.drain()
        server.now += 10_000
        _ = server.check()
        server.receive(.headers(7), .ping([1]))
        #expect(server.goaways.map { $0.number(at: 0) } == [0x7FFF_FFFF, 1, 1])
    }

    // MARK: Quiet

    @Test func `is found by PING when the peer is quiet`() {
        let server = TestConnection()
        #expect(server.check() == server.now + 30_000)
        server.now += 29_999
        _ = server.check()
        #expect(server.sent.isEmpty)
        server.now += 1
        #expect(server.check() == server.now + 10_000)
        #expect(server.sent.map(\.type) == [.ping])
        server.now += 5
        server.receive(.ping(server.sent[0].payload, ack: true))
        #expect(server.seen == [.pingAnswered(5)])
        #expect(server.check() == server.now + 30_000)
        server.now += 30_000
        _ = server.check()
        #expect(server.sent.count == 2)
        server.now += 10_000
        #expect(server.check() == nil)
        #expect(server.hasFailed)
        #expect(server.goaways.map(\.code) == [.noError])
    }

    @Test func `is put off by any frame`() {
        let server = TestConnection()
        for _ in 0..<10 {
            server.now += 20_000
            server.receive(.windowUpdate(0, 1000))
            _ = server.check()
        }
        #expect(server.sent.isEmpty)
    }

    @Test func `is not put off by an answer that was not asked for`() {
        let server = TestConnection()
        server.now += 30_000
        _ = server.check()
        let ping = server.sent[0]
        var other = ping.payload
        other[7] ^= 1
        server.receive(.ping(other, ack: true))
        #expect(server.seen.isEmpty)
        server.now += 10_000
        #expect(server.check() == nil)
    }

    // MARK: What is sent before anything else

    @Test func `nothing is received while control frames wait to be sent`() {
        var server = HTTP2Connection(
            role: .server, limits: HTTP2Limits(resets: 10_000, controlBytes: 200), now: 0)
        let bytes =
            TestConnection.beginning(for: .server)
            + (0..<100).flatMap { _ in WireFrame.ping().bytes }
        var position = 0
        var waits = 0
        while true {
            let rest = Array(bytes[position...])
            let received = server.receive(rest.span, now: 0)
            position += received.consumed
            let count = server.control.count
            #expect(count <= 200 + 17)
            if received.event == .needMore { break }
            guard received.event == .controlIsFull else { continue }
            #expect(received.consumed == 0)
            waits += 1
            // A part is enough to go on.
            server.tookControl(34)
        }
        #expect(position == bytes.count)
        let hasFailed = server.hasFailed
        #expect(waits > 10 && !hasFailed)
    }

    @Test func `control frames are taken in parts of any size`() {
        let whole = TestConnection()
        whole.receive((0..<50).map { _ in .ping() })
        var server = HTTP2Connection(role: .server, now: 0)
        server.tookControl(server.control.count)
        let bytes =
            TestConnection.beginning(for: .server) + WireFrame.settingsAcknowledgment.bytes
            + (0..<50).flatMap { _ in WireFrame.ping().bytes }
        var position = 0
        var control: [UInt8] = []
        while position < bytes.count {
            let rest = Array(bytes[position...])
            position += server.receive(rest.span, now: 0).consumed
            let count = min(7, server.control.count)
            control += server.control.prefix(count)
            server.tookControl(count)
        }
        control += server.control
        server.tookControl(server.control.count)
        #expect(WireFrame.all(in: control) == [.settingsAcknowledgment] + whole.sent)
        let hasMore = server.hasControl
        #expect(!hasMore)
    }
}
