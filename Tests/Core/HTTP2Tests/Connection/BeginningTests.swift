import HTTP2
import Testing

@Suite("RFC 9113 §3 and §4, beginning and frames,")
struct BeginningTests {
    // MARK: §3.4

    @Test func `§3.4: a server begins with SETTINGS, and answers those of the client`() {
        let server = TestConnection(isOpen: false)
        #expect(server.sent.first?.type == .settings)
        #expect(server.sent.first?.isAcknowledgment == false)
        server.sent = []
        server.receive(TestConnection.beginning(for: .server))
        #expect(server.seen == [.settings])
        #expect(server.sent == [.settingsAcknowledgment])
    }

    @Test func `§3.4: a client begins with its preface and SETTINGS`() {
        var client = HTTP2Connection(role: .client, now: 0)
        let control = Array(client.control)
        #expect(control.starts(with: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)))
        let frames = WireFrame.all(in: Array(control.dropFirst(24)))
        #expect(frames.first?.type == .settings)
        client.tookControl(control.count)
        let hasMore = client.hasControl
        #expect(!hasMore)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "INVALID CONNECTION PREFACE\r\n\r\n"])
    func `§3.4: another preface is an error`(text: String) {
        let server = TestConnection(isOpen: false, piece: 1)
        server.receive(Array(text.utf8))
        #expect(server.seen == [.failed(.badPreface)])
        #expect(server.goaways.map(\.code) == [.protocolError])
    }

    @Test func `§3.4: a preface that differs in any byte is refused there`() {
        let beginning = TestConnection.beginning(for: .server)
        for index in 0..<24 {
            let server = TestConnection(isOpen: false)
            var bytes = Array(beginning[...index])
            bytes[index] ^= 0x20
            server.receive(Array(bytes[..<index]))
            #expect(server.seen == [])
            server.receive([bytes[index]])
            #expect(server.seen == [.failed(.badPreface)])
        }
    }

    @Test(
        arguments: [.server, .client] as [HTTP2Connection.Role],
        [
            .ping(), .headers(1), .settingsAcknowledgment, .windowUpdate(0, 1),
            WireFrame(type: FrameType(rawValue: 200)),
        ] as [WireFrame])
    func `§3.4: the first frame is SETTINGS`(role: HTTP2Connection.Role, frame: WireFrame) {
        let connection = TestConnection(role, isOpen: false)
        connection.receive(Array(TestConnection.beginning(for: role).dropLast(9)))
        connection.receive(frame)
        #expect(connection.seen == [.failed(.settingsMissing)])
        #expect(connection.goaways.map(\.code) == [.protocolError])
    }

    // MARK: §4.1

    @Test func `§4.1: frames of unknown types are ignored, however long`() {
        for length in [0, 1, 16_384] {
            expectAccepted(
                WireFrame(
                    type: FrameType(rawValue: 0x16), flags: 0xFF, stream: 5,
                    payload: [UInt8](repeating: 1, count: length)))
        }
    }

    @Test func `§4.1: flags that have no meaning are ignored`() {
        let connection = expectAccepted(
            WireFrame(type: .ping, flags: 0xFE, payload: [8, 7, 6, 5, 4, 3, 2, 1]))
        #expect(connection.sent.first == .ping([8, 7, 6, 5, 4, 3, 2, 1], ack: true))
    }

    @Test func `§4.1: the reserved bit is ignored`() {
        expectAccepted(WireFrame(type: .ping, stream: 1 << 31, payload: [8, 7, 6, 5, 4, 3, 2, 1]))
        let connection = expectAccepted(.headers(1 << 31 | 1))
        #expect(connection.seen == [.headers(1, WireFrame.someBlock, ends: true)])
    }

    // MARK: §4.2

    @Test func `§4.2: a frame may have 16,384 bytes`() {
        let content = [UInt8](repeating: 7, count: 16_384)
        let connection = expectAccepted(.headers(1, ends: false), .data(1, content, ends: true))
        #expect(connection.seen.last == .data(1, content, ends: true))
        expectAccepted(.headers(1, content))
    }

    @Test(
        arguments: [
            .data(1, count: 16_385), .headers(1, [UInt8](repeating: 0, count: 16_385)),
            WireFrame(type: FrameType(rawValue: 99), statedLength: 16_385),
            WireFrame(type: .settings, statedLength: FrameHeader.greatestLength),
        ] as [WireFrame])
    func `§4.2: a larger frame is an error before it has arrived`(frame: WireFrame) {
        expectFailure(.frameTooLarge, .frameSizeError, of: frame) {
            $0.receive(.headers(1, ends: false))
        }
    }

    @Test(
        arguments: [
            WireFrame(type: .ping, payload: [1, 2, 3, 4, 5, 6, 7]),
            WireFrame(type: .ping, payload: [1, 2, 3, 4, 5, 6, 7, 8, 9]),
            WireFrame(type: .settings, payload: [0, 3, 0]),
            WireFrame(type: .settings, flags: 1, payload: [0, 3, 0, 0, 0, 1]),
            WireFrame(type: .resetStream, stream: 1, payload: [0, 0, 0]),
            WireFrame(type: .windowUpdate, payload: [0, 0, 1]),
            WireFrame(type: .windowUpdate, stream: 1, payload: [0, 0, 0, 0, 1]),
            WireFrame(type: .goaway, payload: [0, 0, 0, 0, 0, 0, 0]),
            WireFrame(type: .priorityUpdate, payload: [0, 0, 0]),
            WireFrame(type: .data, flags: 8, stream: 1),
            WireFrame(type: .headers, flags: 0xC, stream: 3),
            WireFrame(type: .headers, flags: 0x24, stream: 3, payload: [0, 0, 0, 0]),
            WireFrame(type: .headers, flags: 0x2C, stream: 3, payload: [0, 0, 0, 0, 0]),
        ] as [WireFrame])
    func `§4.2: a length that a type does not allow is an error`(frame: WireFrame) {
        expectFailure(.badFrameLength, .frameSizeError, of: frame) {
            $0.receive(.headers(1, ends: false))
        }
    }

    // MARK: §4.3

    @Test(
        arguments: [
            .priority(1, dependingOn: 0), .headers(3), .data(1, count: 1, ends: true),
            WireFrame(type: FrameType(rawValue: 0x16)), .ping(), .settings(), .windowUpdate(0, 1),
            .continuation(3), .reset(1), .continuation(0),
        ] as [WireFrame])
    func `§4.3, §5.5, §6.2, §6.10: nothing comes between the frames of a field block`(
        frame: WireFrame
    ) {
        expectFailure(
            .fieldBlockInterrupted, .protocolError, of: .headers(1, complete: false), frame)
        expectFailure(
            .fieldBlockInterrupted, .protocolError, of: .headers(1, complete: false),
            .continuation(1, complete: false), frame)
    }

    @Test func `§4.3: a field block that cannot be decoded ends the connection`() {
        let connection = TestConnection()
        connection.receive(.headers(1))
        connection.machine.fail(.headerCompression)
        connection.takeControl()
        #expect(connection.goaways.map(\.code) == [.compressionError])
        connection.receive(.headers(3))
        #expect(connection.failure == .headerCompression)
    }

    @Test func `§4.3, §6.10: the parts of a field block are put together`() {
        let connection = expectAccepted(
            .headers(1, ends: true, complete: false, [1, 2]), .continuation(1, complete: false, []),
            .continuation(1, complete: false, [3]), .continuation(1, [4, 5]))
        #expect(connection.seen == [.headers(1, [1, 2, 3, 4, 5], ends: true)])
    }

    @Test func `§4.3, §10.5.1: a field block beyond the limit ends the connection`() {
        let part = [UInt8](repeating: 0, count: 10_000)
        let limits = HTTP2Limits(fieldBlockBytes: 40_000)
        var frames: [WireFrame] = [.headers(1, complete: false, part)]
        frames += (0..<2).map { _ in .continuation(1, complete: false, part) }
        let within = receiving(frames + [.continuation(1, part)], limits: limits)
        #expect(within.seen.count == 1)
        let beyond = receiving(
            frames + [.continuation(1, complete: false, part), .continuation(1, [1])],
            limits: limits)
        #expect(beyond.failure == .fieldBlockTooLarge)
        #expect(beyond.goaways.map(\.code) == [.enhanceYourCalm])
    }
}
