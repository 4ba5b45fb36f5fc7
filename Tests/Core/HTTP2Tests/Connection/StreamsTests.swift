import HTTP2
import Testing

@Suite("RFC 9113 §5, streams,")
struct StreamsTests {
    /// A client has ended its direction, or reset the stream, or both sides have ended it.
    private static func open(_ connection: TestConnection) {
        connection.receive(.headers(1, ends: false))
    }

    private static func halfClose(_ connection: TestConnection) { connection.receive(.headers(1)) }

    private static func end(_ connection: TestConnection) {
        halfClose(connection)
        connection.respond(1)
    }

    private static func endWithoutRelease(_ connection: TestConnection) {
        halfClose(connection)
        _ = connection.sendHead(1, ends: true)
    }

    // MARK: §5.1 idle

    @Test(
        arguments: [
            .data(1, count: 4, ends: true), .reset(1), .windowUpdate(1, 100), .reset(2),
            .windowUpdate(2, 1), .data(2, count: 1),
        ] as [WireFrame])
    func `§5.1, §6.4, §6.9: an idle stream can only be opened`(frame: WireFrame) {
        expectFailure(.frameOnIdleStream, .protocolError, of: frame)
    }

    @Test func `§5.1, §6.10: CONTINUATION opens no stream`() {
        expectFailure(.continuationUnexpected, .protocolError, of: .continuation(1))
    }

    @Test func `§5.1, §5.3: PRIORITY is accepted on a stream in any state`() {
        expectAccepted(.priority(1, dependingOn: 0), .priority(2, dependingOn: 1))
        expectAccepted(.priority(1, dependingOn: 3), after: Self.open)
        expectAccepted(.priority(1, dependingOn: 3), after: Self.halfClose)
        expectAccepted(.priority(1, dependingOn: 3), after: Self.end)
        // PRIORITY on a stream that is idle does not open those before.
        let connection = expectAccepted(.priority(5, dependingOn: 0), .headers(3))
        #expect(connection.seen == [.headers(3, WireFrame.someBlock, ends: true)])
    }

    // MARK: §5.1 half-closed (remote)

    @Test(
        arguments: [.data(1, count: 4, ends: true), .headers(1), .headers(1, ends: false)]
            as [WireFrame])
    func `§5.1, §6.1: after the peer's end another frame is an error of the stream`(
        frame: WireFrame
    ) {
        expectReset(1, .streamClosed, of: frame, after: Self.halfClose)
        let connection = receiving([frame], after: Self.halfClose)
        #expect(connection.seen.last == .streamFailed(1, .frameAfterEnd))
        #expect(connection.state(1) == .resetByUs)
    }

    @Test func `§5.1: CONTINUATION after the peer's end is an error`() {
        expectFailure(
            .continuationUnexpected, .protocolError, of: .continuation(1), after: Self.halfClose)
        expectFailure(
            .continuationUnexpected, .protocolError, of: .reset(1), .continuation(1),
            after: Self.open)
        expectFailure(
            .continuationUnexpected, .protocolError, of: .continuation(1), after: Self.end)
    }

    @Test func `§5.1: WINDOW_UPDATE and RST_STREAM are accepted after the peer's end`() {
        expectAccepted(.windowUpdate(1, 1), after: Self.halfClose)
        let connection = expectAccepted(.reset(1), after: Self.halfClose)
        #expect(connection.seen.last == .reset(1, .cancel))
    }

    // MARK: §5.1 closed

    @Test func `§5.1: DATA on a closed stream is answered with STREAM_CLOSED`() {
        expectReset(1, .streamClosed, of: .reset(1), .data(1, count: 4), after: Self.open)
        expectReset(1, .streamClosed, of: .data(1, count: 4, ends: true), after: Self.end)
        expectReset(
            1, .streamClosed, of: .data(1, count: 4, ends: true), after: Self.endWithoutRelease)
        expectReset(1, .streamClosed, of: .reset(1), .data(1, count: 4)) {
            Self.open($0)
            $0.receive(.reset(1))
            $0.release(1)
        }
    }

    @Test func `§5.1: HEADERS on a stream that the peer closed end the connection`() {
        expectFailure(.frameOnClosedStream, .streamClosed, of: .headers(1), after: Self.end)
        expectFailure(
            .frameOnClosedStream, .streamClosed, of: .headers(1), after: Self.endWithoutRelease)
        expectFailure(
            .frameOnClosedStream, .streamClosed, of: .reset(1), .headers(1), after: Self.open)
    }

    @Test(arguments: [true, false])
    func `§5.1: what was on its way when this side reset a stream is passed over`(
        isReleased: Bool
    ) {
        let connection = expectAccepted(
            .data(1, count: 100), .windowUpdate(1, 5), .headers(1, [9, 9]), .reset(1)
        ) {
            Self.open($0)
            $0.reset(1)
            if isReleased { $0.release(1) }
            $0.seen = []
            $0.sent = []
        }
        // The block is decoded, to keep the table in step.
        #expect(connection.seen == [.discarded([9, 9])])
    }

    @Test func `§5.1: content that is passed over counts towards the connection's window`() {
        let limits = HTTP2Limits(connectionWindow: 65_535)
        let connection = TestConnection(limits: limits)
        Self.open(connection)
        connection.reset(1)
        for _ in 0..<8 { connection.receive(.data(1, count: 8192)) }
        #expect(connection.enlarged(0) >= 32_768)
        #expect(connection.enlarged(1) == 0)
        #expect(connection.seen.filter { $0 != .warned }.count == 1)
    }

    @Test func `§5.1: RST_STREAM and WINDOW_UPDATE may cross this side's end`() {
        for end in [Self.end, Self.endWithoutRelease] {
            let connection = expectAccepted(.windowUpdate(1, 1), .reset(1), after: end)
            #expect(connection.seen == [.headers(1, WireFrame.someBlock, ends: true)])
        }
    }

    // MARK: §5.1.1

    @Test func `§5.1.1: a client's streams have odd numbers`() {
        expectFailure(.badStreamID, .protocolError, of: .headers(2))
    }

    @Test func `§5.1.1: a stream's number is greater than those before`() {
        expectFailure(.badStreamID, .protocolError, of: .headers(5), .headers(3))
        expectFailure(.badStreamID, .protocolError, of: .headers(3), .headers(1))
    }

    @Test func `§5.1.1: numbers may be passed over`() {
        let connection = expectAccepted(.headers(5), .headers(0x7FFF_FFFF))
        #expect(connection.streams.keys.sorted() == [5, 0x7FFF_FFFF])
    }

    // MARK: §5.1.2

    @Test func `§5.1.2: a stream beyond the limit is refused, and its fields are decoded`() {
        let limits = HTTP2Limits(streams: 2)
        let connection = TestConnection(limits: limits)
        connection.receive(.headers(1), .headers(3, ends: false), .headers(5, ends: false, [7]))
        #expect(connection.seen.last == .discarded([7]))
        #expect(connection.resets == [5: .refusedStream])
        connection.receive(.data(5, count: 10), .headers(5, [8]))
        #expect(connection.seen.last == .discarded([8]))
        #expect(!connection.hasFailed)
    }

    @Test func `§5.1.2: a stream that has ended makes room at once`() {
        let connection = TestConnection(limits: HTTP2Limits(streams: 1))
        connection.receive(.headers(1))
        _ = connection.sendHead(1, ends: true)
        connection.receive(.headers(3))
        #expect(connection.streams[3] != nil)
    }

    @Test(arguments: [true, false])
    func `a stream that was reset keeps its place until it is released`(byPeer: Bool) {
        let connection = TestConnection(limits: HTTP2Limits(streams: 1))
        connection.receive(.headers(1))
        if byPeer { connection.receive(.reset(1)) } else { connection.reset(1) }
        connection.receive(.headers(3))
        #expect(connection.resets[3] == .refusedStream)
        connection.release(1)
        connection.receive(.headers(5))
        #expect(connection.streams[5] != nil)
    }

    @Test func `streams that have ended and are not released have a limit, too`() {
        let connection = TestConnection(limits: HTTP2Limits(streams: 2))
        for id in stride(from: UInt32(1), to: 9, by: 2) {
            connection.receive(.headers(id))
            _ = connection.sendHead(id, ends: true)
        }
        connection.receive(.headers(9))
        #expect(connection.resets == [9: .refusedStream])
    }

    // MARK: §5.3 and §5.4

    @Test func `§5.3.1 of RFC 7540: a stream does not depend on itself`() {
        expectReset(1, .protocolError, of: .headers(1, dependingOn: 1))
        expectReset(1, .protocolError, of: .priority(1, dependingOn: 1), after: Self.open)
        expectFailure(.streamDependsOnItself, .protocolError, of: .priority(1, dependingOn: 1))
        let connection = expectAccepted(.headers(3, dependingOn: 1))
        #expect(connection.seen == [.headers(3, WireFrame.someBlock, ends: true)])
    }

    @Test func `§5.4.1: an error of the connection names the last stream`() {
        let connection = receiving([
            .headers(1), .headers(7), WireFrame(type: .ping, stream: 1, payload: [0]),
        ])
        #expect(connection.goaways.map { $0.number(at: 0) } == [7])
        #expect(connection.sent.last?.type == .goaway)
    }

    @Test func `§5.4.1: nothing is read after an error`() {
        let connection = receiving([.headers(2), .headers(1), .ping()])
        #expect(connection.seen == [.failed(.badStreamID)])
        #expect(connection.sent.count == 1)
    }

    @Test func `§5.4.2: RST_STREAM is not answered with RST_STREAM`() {
        let connection = expectAccepted(.reset(1), .reset(1), after: Self.open)
        #expect(connection.seen.count == 2)
        connection.reset(1)
        #expect(connection.resets.isEmpty)
    }

    @Test func `§5.5: an unknown frame is ignored on a stream in any state`() {
        let frame = WireFrame(type: FrameType(rawValue: 0xFF), stream: 1, payload: [1, 2, 3])
        for prepare in [{ _ in }, Self.open, Self.halfClose, Self.end] as [(TestConnection) -> Void]
        {
            expectAccepted(frame, after: prepare)
        }
    }
}
