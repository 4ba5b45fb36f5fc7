import HTTP2
import HTTPCore
import Testing

/// What a connection has reported, with bytes in place of their positions.
enum Seen: Equatable {
    case headers(UInt32, [UInt8], ends: Bool)
    case trailers(UInt32, [UInt8])
    case discarded([UInt8])
    case data(UInt32, [UInt8], ends: Bool)
    case reset(UInt32, ErrorCode)
    case streamFailed(UInt32, StreamReason)
    case windowGrew(UInt32?)
    case settings
    case pingAnswered(Int64)
    case goaway(UInt32, ErrorCode)
    case priority(UInt32, StreamPriority)
    case warned
    case failed(ConnectionReason)
}

/// A connection under test, with the peer's part played by the test.
final class TestConnection {
    var machine: HTTP2Connection
    var now: Int64 = 1_000_000
    var seen: [Seen] = []
    /// The frames that the connection has sent, other than a client's preface.
    var sent: [WireFrame] = []
    /// The streams that have not been released, by number.
    var streams: [UInt32: StreamRef] = [:]
    private var unread: [UInt8] = []
    /// How many bytes arrive at a time.
    private let piece: Int

    /// - Parameter isOpen: whether the peer's beginning has arrived and been answered, and what was
    ///   reported of it is forgotten.
    init(
        _ role: HTTP2Connection.Role = .server, limits: HTTP2Limits = HTTP2Limits(),
        isOpen: Bool = true, piece: Int = .max
    ) {
        machine = HTTP2Connection(role: role, limits: limits, now: now)
        self.piece = piece
        takeControl(skipping: role == .client ? HTTP2Connection.preface.utf8CodeUnitCount : 0)
        guard isOpen else { return }
        receive(TestConnection.beginning(for: role))
        receive([.settingsAcknowledgment])
        seen = []
        sent = []
    }

    /// What the peer of a connection in this role begins with.
    static func beginning(
        for role: HTTP2Connection.Role, settings: [(SettingID, UInt32)] = []
    ) -> [UInt8] {
        let preface = UnsafeBufferPointer(
            start: HTTP2Connection.preface.utf8Start,
            count: HTTP2Connection.preface.utf8CodeUnitCount)
        return (role == .server ? Array(preface) : []) + WireFrame.settings(settings).bytes
    }

    func receive(_ frames: [WireFrame]) { receive(frames.flatMap(\.bytes)) }
    func receive(_ frames: WireFrame...) { receive(frames) }

    /// Takes bytes as they arrive, until more are needed.
    func receive(_ bytes: [UInt8]) {
        unread += bytes
        var arrived = unread.count - bytes.count
        var start = 0
        while arrived < unread.count {
            arrived = piece < unread.count - arrived ? arrived + piece : unread.count
            process(upTo: arrived, from: &start)
        }
        unread.removeFirst(start)
    }

    private func process(upTo end: Int, from start: inout Int) {
        while true {
            let received = machine.receive(unread.span.extracting(start..<end), now: now)
            precondition(received.consumed >= 0 && received.consumed <= end - start)
            note(received.event, from: start)
            start += received.consumed
            if machine.hasControl { takeControl() }
            switch received.event {
            case .needMore: return
            case .controlIsFull: Issue.record("what was sent has been taken")
            default: break
            }
        }
    }

    private func note(_ event: HTTP2Connection.Event, from start: Int) {
        func bytes(_ range: Range<Int>) -> [UInt8] {
            Array(unread[start + range.lowerBound..<start + range.upperBound])
        }
        func content(_ block: HTTP2Connection.FieldBlock) -> [UInt8] {
            switch block {
            case .received(let range): bytes(range)
            case .assembled: Array(machine.assembledBlock)
            }
        }
        switch event {
        case .needMore, .nothing, .controlIsFull: break
        case .headers(let ref, let block, let ends):
            streams[ref.id] = ref
            seen.append(.headers(ref.id, content(block), ends: ends))
        case .trailers(let ref, let block): seen.append(.trailers(ref.id, content(block)))
        case .discarded(let block): seen.append(.discarded(content(block)))
        case .data(let ref, let range, let ends):
            // Content may arrive in any number of parts.
            if case .data(ref.id, let before, false) = seen.last {
                seen[seen.count - 1] = .data(ref.id, before + bytes(range), ends: ends)
            } else {
                seen.append(.data(ref.id, bytes(range), ends: ends))
            }
        case .reset(let ref, let code): seen.append(.reset(ref.id, code))
        case .streamFailed(let ref, let reason): seen.append(.streamFailed(ref.id, reason))
        case .windowGrew(let ref): seen.append(.windowGrew(ref?.id))
        case .settings: seen.append(.settings)
        case .pingAnswered(let time): seen.append(.pingAnswered(time))
        case .goaway(let last, let code): seen.append(.goaway(last, code))
        case .priority(let ref, let priority): seen.append(.priority(ref.id, priority))
        case .warned: seen.append(.warned)
        case .failed(let reason): seen.append(.failed(reason))
        }
    }

    func takeControl(skipping preface: Int = 0) {
        let bytes = Array(machine.control)
        machine.tookControl(bytes.count)
        sent += WireFrame.all(in: Array(bytes.dropFirst(preface)))
    }

    // MARK: What the program does

    /// The stream with this number; it must not have been released.
    subscript(_ id: UInt32) -> StreamRef { streams[id] ?? StreamRef(id: id, slot: -1) }

    func open() -> UInt32? {
        guard let ref = machine.open(now: now) else { return nil }
        streams[ref.id] = ref
        return ref.id
    }

    func release(_ id: UInt32) {
        machine.released(self[id])
        streams[id] = nil
        takeControl()
    }

    func reset(_ id: UInt32, _ code: ErrorCode = .cancel) {
        machine.reset(self[id], code)
        takeControl()
    }

    func consume(_ id: UInt32, _ count: Int) {
        machine.consumed(self[id], count)
        takeControl()
    }

    func setAside(_ id: UInt32, _ count: Int) {
        machine.setAside(self[id], count)
        takeControl()
    }

    /// Responds without content, and releases the stream.
    func respond(_ id: UInt32) {
        let isSent = sendHead(id, ends: true)
        #expect(isSent)
        release(id)
    }

    func sendHead(_ id: UInt32, ends: Bool) -> Bool {
        machine.sendHead(self[id], endsStream: ends)
    }

    func sendData(_ id: UInt32, _ count: Int, ends: Bool = false) -> Bool {
        machine.sentData(self[id], count, endsStream: ends)
    }

    func sendable(_ id: UInt32) -> Int { machine.sendable(self[id]) }

    func wantsToSend(_ ids: UInt32...) { for id in ids { machine.wantsToSend(self[id]) } }

    var next: UInt32? { machine.nextToSend()?.id }

    func expectContent(_ id: UInt32, _ length: UInt64) -> Bool {
        let isPossible = machine.expectContent(self[id], length, now: now)
        takeControl()
        return isPossible
    }

    func check() -> Int64? {
        let next = machine.check(now: now)
        takeControl()
        return next
    }

    func drain() {
        machine.drain(now: now)
        takeControl()
    }

    var isDone: Bool { machine.isDone }
    var hasFailed: Bool { machine.hasFailed }
    var isEnding: Bool { machine.isEnding }
    var room: Int { machine.roomForStreams }
    var peer: PeerSettings { machine.peer }

    func counted(_ abuse: Abuse) -> UInt32 { machine.budget[abuse] }

    func state(_ id: UInt32) -> StreamState { machine.state(of: self[id]) }

    // MARK: What was sent

    /// The resets that were sent: number and code.
    var resets: [UInt32: ErrorCode] {
        sent.reduce(into: [:]) { if $1.type == .resetStream { $0[$1.stream] = $1.code } }
    }

    var goaways: [WireFrame] { sent.filter { $0.type == .goaway } }

    /// What the peer's windows have been enlarged by, on a stream or on the connection (0).
    func enlarged(_ stream: UInt32) -> Int {
        sent.reduce(0) {
            $1.type == .windowUpdate && $1.stream == stream ? $0 + Int($1.number(at: 0)) : $0
        }
    }

    /// The error that the connection has ended with.
    var failure: ConnectionReason? {
        if case .failed(let reason) = seen.last { reason } else { nil }
    }
}

/// Lets frames arrive whole and byte by byte; both must lead to the same.
func receiving(
    _ frames: [WireFrame], as role: HTTP2Connection.Role = .server,
    limits: HTTP2Limits = HTTP2Limits(), after prepare: (TestConnection) -> Void = { _ in }
) -> TestConnection {
    let whole = TestConnection(role, limits: limits)
    let pieces = TestConnection(role, limits: limits, piece: 1)
    for connection in [whole, pieces] {
        prepare(connection)
        connection.receive(frames)
    }
    #expect(whole.seen == pieces.seen)
    #expect(whole.sent == pieces.sent)
    return whole
}

/// Expects that frames end the connection with this reason, and that the peer is told its code.
func expectFailure(
    _ reason: ConnectionReason, _ code: ErrorCode, of frames: WireFrame...,
    as role: HTTP2Connection.Role = .server,
    sourceLocation: SourceLocation = #_sourceLocation,
    after prepare: (TestConnection) -> Void = { _ in }
) {
    let connection = receiving(frames, as: role, after: prepare)
    #expect(connection.failure == reason, sourceLocation: sourceLocation)
    #expect(connection.goaways.last?.code == code, sourceLocation: sourceLocation)
    #expect(
        connection.goaways.last?.text.hasPrefix("\(reason.explanation)") == true,
        sourceLocation: sourceLocation)
    #expect(connection.hasFailed && connection.isDone, sourceLocation: sourceLocation)
}

/// Expects that frames reset a stream with this code, and that the connection goes on.
func expectReset(
    _ stream: UInt32, _ code: ErrorCode, of frames: WireFrame...,
    as role: HTTP2Connection.Role = .server,
    sourceLocation: SourceLocation = #_sourceLocation,
    after prepare: (TestConnection) -> Void = { _ in }
) {
    let connection = receiving(frames + [.ping()], as: role, after: prepare)
    #expect(connection.resets[stream] == code, sourceLocation: sourceLocation)
    #expect(
        connection.sent.last == .ping(ack: true),
        "the connection goes on", sourceLocation: sourceLocation)
}

/// Expects that frames are taken, and that the connection goes on without an error.
@discardableResult
func expectAccepted(
    _ frames: WireFrame..., as role: HTTP2Connection.Role = .server,
    sourceLocation: SourceLocation = #_sourceLocation,
    after prepare: (TestConnection) -> Void = { _ in }
) -> TestConnection {
    let connection = receiving(frames + [.ping()], as: role, after: prepare)
    #expect(
        connection.sent.last == .ping(ack: true), "the connection goes on",
        sourceLocation: sourceLocation)
    #expect(connection.resets.isEmpty, sourceLocation: sourceLocation)
    #expect(connection.goaways.isEmpty, sourceLocation: sourceLocation)
    return connection
}
