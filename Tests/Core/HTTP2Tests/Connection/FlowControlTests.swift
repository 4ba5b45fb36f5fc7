import HTTP2
import Testing

@Suite("RFC 9113 §5.2 and §6.9, flow control,")
struct FlowControlTests {
    private static func open(_ connection: TestConnection) {
        connection.receive(.headers(1, ends: false))
    }

    // MARK: What may be sent

    @Test func `§6.9.1: no more is sent than both windows allow`() {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 1)]), .headers(1))
        _ = connection.sendHead(1, ends: false)
        #expect(connection.sendable(1) == 1)
        #expect(connection.sendData(1, 1))
        #expect(connection.sendable(1) == 0)
        connection.receive(.windowUpdate(1, 100_000))
        #expect(connection.sendable(1) == 16_384)
        for _ in 0..<3 { _ = connection.sendData(1, 16_384) }
        // 65,535 for the connection, of which 49,153 are used.
        #expect(connection.sendable(1) == 16_382)
        _ = connection.sendData(1, 16_382)
        #expect(connection.sendable(1) == 0)
        connection.receive(.windowUpdate(0, 10))
        #expect(connection.seen.last == .windowGrew(nil))
        #expect(connection.sendable(1) == 10)
    }

    @Test func `§6.9.1: DATA without content needs no window`() {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 0)]), .headers(1))
        _ = connection.sendHead(1, ends: false)
        #expect(connection.sendable(1) == 0)
        #expect(connection.sendData(1, 0, ends: true))
        #expect(connection.state(1) == .ended)
    }

    @Test func `§6.9.1: a window beyond 2^31 - 1 is an error`() {
        expectFailure(
            .windowTooLarge, .flowControlError, of: .windowUpdate(0, 0x7FFF_FFFF),
            .windowUpdate(0, 0x7FFF_FFFF))
        expectReset(
            1, .flowControlError, of: .windowUpdate(1, 0x7FFF_FFFF), .windowUpdate(1, 1),
            after: Self.open)
        expectAccepted(.windowUpdate(0, 0x7FFF_FFFF - 65_535))
        expectFailure(
            .windowTooLarge, .flowControlError, of: .windowUpdate(0, 0x7FFF_FFFF - 65_534))
    }

    @Test func `§6.9: an increment of 0 is an error`() {
        expectFailure(.zeroWindowUpdate, .protocolError, of: .windowUpdate(0, 0))
        expectReset(1, .protocolError, of: .windowUpdate(1, 0), after: Self.open)
        // The reserved bit is no part of it.
        expectFailure(.zeroWindowUpdate, .protocolError, of: .windowUpdate(0, 1 << 31))
    }

    @Test func `§6.9.2: windows follow the initial one, and may become negative`() {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 100)]), .headers(1))
        _ = connection.sendHead(1, ends: false)
        _ = connection.sendData(1, 80)
        connection.receive(.settings([(.initialWindowSize, 0)]))
        #expect(connection.sendable(1) == 0)
        connection.receive(.windowUpdate(1, 80))
        #expect(connection.seen.last == .settings)
        #expect(connection.sendable(1) == 0)
        connection.receive(.windowUpdate(1, 1))
        #expect(connection.seen.last == .windowGrew(1))
        #expect(connection.sendable(1) == 1)
        connection.receive(.settings([(.initialWindowSize, 50)]))
        #expect(connection.sendable(1) == 51)
    }

    @Test func `§6.9.2: an initial window that makes a stream's too large is an error`() {
        expectFailure(
            .windowTooLarge, .flowControlError, of: .windowUpdate(1, 1 << 30),
            .settings([(.initialWindowSize, 0x7FFF_FFFF)]), after: Self.open)
    }

    @Test func `§6.9.2: the initial window does not change that of the connection`() {
        let connection = TestConnection()
        connection.receive(.settings([(.initialWindowSize, 1 << 20)]), .headers(1))
        connection.receive(.settings([(.maxFrameSize, 1 << 20)]))
        _ = connection.sendHead(1, ends: false)
        #expect(connection.sendable(1) == 65_535)
    }

    // MARK: What may be received

    @Test func `§6.9.1: content beyond a stream's window is an error of the stream`() {
        let limits = HTTP2Limits(streamWindow: 100)
        let connection = receiving(
            [.data(1, count: 60), .data(1, count: 41), .ping()], limits: limits, after: Self.open)
        #expect(connection.seen.last == .streamFailed(1, .windowExceeded))
        #expect(connection.resets == [1: .flowControlError])
        #expect(connection.sent.last == .ping(ack: true))
    }

    @Test func `§6.9.1: content beyond the connection's window ends it`() {
        let limits = HTTP2Limits(streamWindow: 1 << 20, connectionWindow: 65_535)
        let connection = TestConnection(limits: limits)
        Self.open(connection)
        for _ in 0..<4 { connection.receive(.data(1, count: 16_383)) }
        #expect(!connection.hasFailed)
        connection.receive(.data(1, count: 4))
        #expect(connection.failure == .windowExceeded)
        #expect(connection.goaways.map(\.code) == [.flowControlError])
    }

    @Test func `§6.9.2: a small window holds once it has been acknowledged`() {
        let connection = TestConnection(limits: HTTP2Limits(streamWindow: 10), isOpen: false)
        connection.receive(TestConnection.beginning(for: .server))
        connection.receive(.headers(1, ends: false), .data(1, count: 10_000))
        #expect(connection.resets.isEmpty)
        connection.receive(.settingsAcknowledgment, .data(1, count: 1))
        #expect(connection.resets == [1: .flowControlError])
    }

    @Test func `windows are announced when half of them has been taken`() {
        let connection = TestConnection()
        Self.open(connection)
        connection.receive(.data(1, count: 16_000), .data(1, count: 16_000))
        connection.receive(.data(1, count: 1_000))
        connection.consume(1, 32_767)
        #expect(connection.enlarged(1) == 0)
        connection.consume(1, 1)
        #expect(connection.enlarged(1) == 32_768)
    }

    @Test func `what is not taken is not announced`() {
        let connection = TestConnection()
        Self.open(connection)
        for _ in 0..<3 { connection.receive(.data(1, count: 16_384)) }
        #expect(connection.enlarged(1) == 0 && connection.enlarged(0) == 0)
    }

    @Test func `what waits when a stream is closed is given back to the connection`() {
        let limits = HTTP2Limits(connectionWindow: 65_535)
        for release in [true, false] {
            let connection = TestConnection(limits: limits)
            Self.open(connection)
            for _ in 0..<3 { connection.receive(.data(1, count: 16_384)) }
            if release { connection.release(1) } else { connection.receive(.reset(1)) }
            #expect(connection.enlarged(0) == 49_152)
            connection.consume(1, 49_152)
            #expect(connection.enlarged(0) == 49_152)
        }
    }

    @Test func `what is set aside counts towards its stream's window alone`() {
        let limits = HTTP2Limits(connectionWindow: 65_535)
        let connection = TestConnection(limits: limits)
        connection.receive(.headers(1, ends: false), .headers(3, ends: false))
        for _ in 0..<3 {
            connection.receive(.data(1, count: 16_384))
            connection.setAside(1, 16_384)
        }
        #expect(connection.enlarged(0) == 32_768 && connection.enlarged(1) == 0)
        // Others have the whole window, or nearly.
        for _ in 0..<2 { connection.receive(.data(3, count: 16_384)) }
        #expect(connection.failure == nil)
        connection.consume(3, 32_768)
        #expect(connection.enlarged(0) == 81_920)
        // What is taken is not announced a second time for the connection.
        connection.consume(1, 49_152)
        #expect(connection.enlarged(1) == 49_152 && connection.enlarged(0) == 81_920)
        // Nor is what was set aside when the stream is closed.
        connection.receive(.data(3, count: 16_384))
        connection.setAside(3, 16_384)
        let before = connection.enlarged(0)
        connection.receive(.reset(3))
        connection.consume(3, 16_384)
        #expect(connection.enlarged(0) == before)
    }

    @Test func `nothing is announced on a stream that the peer has ended`() {
        let connection = TestConnection()
        Self.open(connection)
        for index in 0..<3 { connection.receive(.data(1, count: 16_384, ends: index == 2)) }
        connection.consume(1, 49_152)
        #expect(connection.enlarged(1) == 0)
    }

    // MARK: Growth

    @Test func `windows grow with what arrives until PING is answered, up to the limits`() {
        let limits = HTTP2Limits(
            greatestStreamWindow: 1 << 20, connectionWindow: 1 << 17,
            greatestConnectionWindow: 1 << 21)
        let connection = TestConnection(limits: limits)
        Self.open(connection)
        var window = 65_535
        var most = 0
        for _ in 0..<40 {
            // What the peer can send in the time that a PING needs.
            var pings: [WireFrame] = []
            var sentBytes = 0
            while sentBytes + 16_384 <= window {
                connection.sent = []
                connection.seen = []
                connection.receive(.data(1, count: 16_384))
                connection.consume(1, 16_384)
                pings += connection.sent.filter { $0.type == .ping }
                sentBytes += 16_384
                window += connection.enlarged(1)
                if sentBytes >= 1 << 21 { break }
            }
            window -= sentBytes
            most = max(most, window)
            connection.now += 50
            connection.sent = []
            for ping in pings { connection.receive(.ping(ping.payload, ack: true)) }
        }
        #expect(most > 1 << 19)
        #expect(most <= 1 << 20)
        #expect(!connection.hasFailed)
    }

    @Test func `a window that suffices does not grow, and is measured seldom`() {
        let connection = TestConnection()
        Self.open(connection)
        for _ in 0..<1000 {
            connection.seen = []
            connection.receive(.data(1, count: 16_384))
            connection.consume(1, 16_384)
            for ping in connection.sent where ping.type == .ping {
                connection.receive(.ping(ping.payload, ack: true))
            }
            connection.sent.removeAll { $0.type == .ping }
        }
        #expect(connection.enlarged(1) <= 1000 * 16_384)
        connection.now += 1000
        connection.receive(.data(1, count: 16_384), .data(1, count: 16_384))
        #expect(connection.sent.count { $0.type == .ping } == 1)
    }

    @Test func `small content is measured by no PING`() {
        let connection = TestConnection()
        for id in stride(from: UInt32(1), to: 19, by: 2) {
            connection.receive(.headers(id, ends: false), .data(id, count: 1000, ends: true))
            connection.consume(id, 1000)
            connection.respond(id)
        }
        #expect(connection.sent.isEmpty)
    }

    // MARK: Content-Length (§8.1.1)

    @Test func `§8.1.1: content has the length that was expected`() {
        for (counts, reason) in [
            ([10], nil), ([4, 6], nil), ([11], .contentTooLong), ([4, 7], .contentTooLong),
            ([9], .contentTooShort), ([4, 5], .contentTooShort), ([0], .contentTooShort),
        ] as [([Int], StreamReason?)] {
            let connection = receiving(
                counts.enumerated().map {
                    .data(1, count: $1, ends: $0 == counts.count - 1)
                }
            ) {
                Self.open($0)
                let isPossible = $0.expectContent(1, 10)
                #expect(isPossible)
            }
            if let reason {
                #expect(connection.seen.last == .streamFailed(1, reason))
                #expect(connection.resets == [1: .protocolError])
            } else {
                #expect(connection.resets.isEmpty)
                #expect(connection.state(1) == .halfClosedRemote)
            }
        }
    }

    @Test func `§8.1.1: trailers do not end content before its length`() {
        let connection = receiving([.data(1, count: 9), .headers(1)]) {
            Self.open($0)
            _ = $0.expectContent(1, 10)
        }
        #expect(
            connection.seen.suffix(2) == [
                .discarded(WireFrame.someBlock), .streamFailed(1, .contentTooShort),
            ])
        #expect(connection.resets == [1: .protocolError])
    }

    @Test func `§8.1.1: a head that ends the stream has no content`() {
        let connection = TestConnection()
        connection.receive(.headers(1), .headers(3))
        let none = connection.expectContent(1, 0)
        let some = connection.expectContent(3, 1)
        #expect(none && !some)
        #expect(connection.resets == [3: .protocolError])
    }

    @Test func `§8.1: a second field block ends the stream`() {
        let connection = receiving([.headers(1, ends: false)], after: Self.open)
        #expect(
            connection.seen.suffix(2) == [
                .discarded(WireFrame.someBlock), .streamFailed(1, .trailersWithoutEnd),
            ])
        #expect(connection.resets == [1: .protocolError])
        let trailers = expectAccepted(.data(1, count: 1), .headers(1, [5]), after: Self.open)
        #expect(trailers.seen.last == .trailers(1, [5]))
        #expect(trailers.state(1) == .halfClosedRemote)
    }
}
