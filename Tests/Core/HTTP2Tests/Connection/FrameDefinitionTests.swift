import HTTP2
import Testing

@Suite("RFC 9113 §6 and §7, frames and error codes,")
struct FrameDefinitionTests {
    private static func open(_ connection: TestConnection) {
        connection.receive(.headers(1, ends: false))
    }

    // MARK: §6.1 to §6.4

    @Test(
        arguments: [
            .data(0, count: 4), .headers(0), .priority(0, dependingOn: 1), .reset(0),
        ] as [WireFrame])
    func `§6.1 to §6.4: a frame of a stream names it`(frame: WireFrame) {
        expectFailure(.streamIDMissing, .protocolError, of: frame, after: Self.open)
    }

    @Test(
        arguments: [
            WireFrame(type: .data, flags: 8, stream: 1, payload: [3, 1, 2]),
            WireFrame(type: .data, flags: 8, stream: 1, payload: [1]),
            WireFrame(type: .headers, flags: 0xD, stream: 3, payload: [4, 1, 2, 3]),
            WireFrame(type: .headers, flags: 0x2D, stream: 3, payload: [1, 0, 0, 0, 0, 0]),
        ] as [WireFrame])
    func `§6.1, §6.2: padding is shorter than its frame`(frame: WireFrame) {
        expectFailure(.paddingTooLong, .protocolError, of: frame, after: Self.open)
    }

    @Test func `§6.1: padding is removed, and counts towards the windows`() {
        let limits = HTTP2Limits(streamWindow: 1000, connectionWindow: 65_535)
        let connection = TestConnection(limits: limits)
        Self.open(connection)
        connection.receive(.padded(1, [1, 2], padding: 200))
        connection.receive(.padded(1, [], padding: 255), .padded(1, [3], padding: 0, ends: true))
        #expect(
            connection.seen.dropFirst() == [.data(1, [1, 2, 3], ends: true)])
        let first = TestConnection(limits: limits)
        Self.open(first)
        for _ in 0..<4 { first.receive(.padded(1, [], padding: 255)) }
        // All of it can be sent again at once.
        #expect(first.enlarged(1) >= 500)
        #expect(!first.hasFailed)
        #expect(first.resets.isEmpty)
    }

    @Test func `§6.1: padding of one byte less than the payload leaves no content`() {
        let connection = expectAccepted(
            WireFrame(type: .data, flags: 9, stream: 1, payload: [2, 0, 0]), after: Self.open)
        #expect(connection.seen.last == .data(1, [], ends: true))
    }

    @Test func `§6.2: padding and priority are removed from a field block`() {
        let connection = expectAccepted(
            WireFrame(
                type: .headers, flags: 0x2D, stream: 1,
                payload: [2, 0, 0, 0, 9, 200] + [1, 2, 3] + [0, 0]),
            WireFrame(type: .headers, flags: 0xD, stream: 3, payload: [1, 4, 0]),
            WireFrame(type: .headers, flags: 0x25, stream: 5, payload: [0x80, 0, 0, 0, 0, 6]))
        #expect(
            connection.seen == [
                .headers(1, [1, 2, 3], ends: true), .headers(3, [4], ends: true),
                .headers(5, [6], ends: true),
            ])
    }

    @Test func `§6.3: PRIORITY has five bytes`() {
        let frame = WireFrame(type: .priority, stream: 1, payload: [0, 0, 0, 0])
        expectReset(1, .frameSizeError, of: frame, after: Self.open)
        expectFailure(.badFrameLength, .frameSizeError, of: frame)
    }

    @Test func `§6.4: a stream can be reset with any code`() {
        for code in [0, 2, 8, 0xFF, 0xFFFF_FFFF] as [UInt32] {
            let connection = expectAccepted(
                .reset(1, ErrorCode(rawValue: code)), after: Self.open)
            #expect(connection.seen.last == .reset(1, ErrorCode(rawValue: code)))
            #expect(connection.state(1) == .resetByPeer)
        }
    }

    // MARK: §6.5

    @Test(
        arguments: [
            WireFrame(type: .settings, stream: 1), WireFrame(type: .settings, flags: 1, stream: 1),
            WireFrame(type: .ping, stream: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]),
            WireFrame(type: .goaway, stream: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]),
            WireFrame(type: .priorityUpdate, stream: 1, payload: [0, 0, 0, 1]),
        ] as [WireFrame])
    func `§6.5, §6.7, §6.8: a frame of the connection names no stream`(frame: WireFrame) {
        expectFailure(.streamIDUnexpected, .protocolError, of: frame, after: Self.open)
    }

    @Test(
        arguments: [
            (.enablePush, 2, .badEnablePush, .protocolError),
            (.initialWindowSize, 1 << 31, .badInitialWindow, .flowControlError),
            (.maxFrameSize, 16_383, .badMaxFrameSize, .protocolError),
            (.maxFrameSize, 1 << 24, .badMaxFrameSize, .protocolError),
            (.enableConnectProtocol, 2, .badEnableConnectProtocol, .protocolError),
            (.noRFC7540Priorities, 2, .badNoRFC7540Priorities, .protocolError),
            (.noRFC7540Priorities, 1, .badNoRFC7540Priorities, .protocolError),
        ] as [(SettingID, UInt32, ConnectionReason, ErrorCode)])
    func `§6.5.2: a value that is not allowed is an error`(
        id: SettingID, value: UInt32, reason: ConnectionReason, code: ErrorCode
    ) {
        expectFailure(reason, code, of: .settings([(id, value)]))
    }

    @Test func `§6.5.2: a server that enables push is refused`() {
        expectFailure(
            .badEnablePush, .protocolError, of: .settings([(.enablePush, 1)]), as: .client)
        expectAccepted(.settings([(.enablePush, 0)]), as: .client)
        expectAccepted(.settings([(.enablePush, 1), (.enablePush, 0)]))
    }

    @Test func `§6.5.2: extended CONNECT is not withdrawn`() {
        expectFailure(
            .badEnableConnectProtocol, .protocolError,
            of: .settings([(.enableConnectProtocol, 1)]), .settings([(.enableConnectProtocol, 0)]),
            as: .client)
        let client = expectAccepted(.settings([(.enableConnectProtocol, 1)]), as: .client)
        #expect(client.peer.enablesConnectProtocol)
    }

    @Test func `§6.5.2: unknown settings are ignored`() {
        let unknown: [(SettingID, UInt32)] = [(SettingID(rawValue: 0xFF), 1)]
        let connection = expectAccepted(WireFrame.settings(unknown))
        #expect(connection.peer == PeerSettings())
        #expect(connection.sent.first == WireFrame.settingsAcknowledgment)
    }

    @Test func `§6.5.2: every setting is known afterwards`() {
        let connection = TestConnection(isOpen: false)
        connection.receive(
            TestConnection.beginning(
                for: .server,
                settings: [
                    (.headerTableSize, 100), (.headerTableSize, 0), (.headerTableSize, 200),
                    (.maxConcurrentStreams, 7), (.initialWindowSize, 0x7FFF_FFFF),
                    (.maxFrameSize, 16_777_215), (.maxHeaderListSize, 5),
                    (.noRFC7540Priorities, 1),
                ]))
        let peer = connection.peer
        #expect(peer.headerTableSize == 200 && peer.leastHeaderTableSize == 0)
        #expect(peer.maxConcurrentStreams == 7)
        #expect(peer.initialWindowSize == Int32.max)
        #expect(peer.maxFrameSize == 16_777_215)
        #expect(peer.maxHeaderListSize == 5)
        #expect(peer.hasNoRFC7540Priorities)
        connection.receive(.settings([(.maxFrameSize, 16_384)]))
        #expect(connection.peer.leastHeaderTableSize == 200)
    }

    @Test func `§6.5.3: SETTINGS are taken in order, and acknowledged`() {
        let connection = TestConnection()
        connection.receive(.headers(1))
        connection.receive(.settings([(.initialWindowSize, 100), (.initialWindowSize, 1)]))
        #expect(connection.sent == [.settingsAcknowledgment])
        #expect(connection.sendable(1) == 1)
    }

    @Test func `§6.5.3: SETTINGS that are not acknowledged end the connection in time`() {
        let connection = TestConnection(isOpen: false)
        connection.receive(TestConnection.beginning(for: .server))
        let next = connection.check()
        #expect(next == connection.now + 10_000)
        connection.now += 9_999
        #expect(connection.check() != nil)
        connection.now += 1
        #expect(connection.check() == nil)
        #expect(connection.goaways.map(\.code) == [.settingsTimeout])
    }

    // MARK: §6.6

    @Test func `§6.6, §8.4: nobody is promised anything`() {
        expectFailure(.pushPromise, .protocolError, of: .pushPromise(1, 2), after: Self.open)
        expectFailure(.pushPromise, .protocolError, of: .pushPromise(1, 2), as: .client) {
            _ = $0.open()
            _ = $0.sendHead(1, ends: true)
        }
    }

    // MARK: §6.7

    @Test func `§6.7: PING is answered with its data`() {
        let connection = receiving([.ping([1, 1, 2, 3, 5, 8, 13, 21])])
        #expect(connection.sent == [.ping([1, 1, 2, 3, 5, 8, 13, 21], ack: true)])
    }

    @Test func `§6.7: an answer to PING is not answered`() {
        let connection = receiving([.ping(ack: true)])
        #expect(connection.sent.isEmpty)
        #expect(connection.seen.isEmpty)
    }

    // MARK: §6.8

    @Test func `§6.8: GOAWAY of a client is reported, and its streams go on`() {
        let connection = expectAccepted(
            .goaway(0, .noError, text: [1, 2, 3]), .data(1, count: 1, ends: true), after: Self.open)
        #expect(
            connection.seen.dropFirst() == [.goaway(0, .noError), .data(1, [0x61], ends: true)])
    }

    @Test func `§6.8: the last stream of GOAWAY never increases`() {
        expectFailure(.goawayIncreased, .protocolError, of: .goaway(0), .goaway(1), as: .client)
        expectAccepted(.goaway(5), .goaway(5), .goaway(1), as: .client)
    }

    // MARK: §6.10

    @Test func `§6.10: CONTINUATION follows an incomplete field block`() {
        expectFailure(.continuationUnexpected, .protocolError, of: .headers(1), .continuation(1))
        expectFailure(
            .continuationUnexpected, .protocolError, of: .headers(1, complete: false),
            .continuation(1), .continuation(1))
    }

    // MARK: §7

    @Test func `§7: an unknown code has no special effect`() {
        let unknown = ErrorCode(rawValue: 0xFF)
        #expect(unknown.name == nil)
        let connection = expectAccepted(.goaway(0, unknown))
        #expect(connection.seen == [.goaway(0, unknown)])
    }

    @Test func `§7: every code has its name`() {
        let names = (UInt32(0)...13).map { "\(ErrorCode(rawValue: $0).name ?? "")" }
        #expect(Set(names).count == 14 && !names.contains(""))
        #expect(names[11] == "ENHANCE_YOUR_CALM")
    }
}
