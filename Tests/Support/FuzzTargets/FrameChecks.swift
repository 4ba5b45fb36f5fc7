import HTTP2
import HTTPCore

extension FuzzTarget {
    /// The first byte selects the role and the limits; what a peer sends after its beginning
    /// follows, or all that it sends.
    ///
    /// The same is found and sent however it arrives, a program that answers some streams and
    /// resets others never sees what must not be, and all that is sent is well-formed.
    func checkFrames(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first else { return false }
        let role: HTTP2Connection.Role = selector & 1 == 0 ? .server : .client
        var received = Array(bytes.dropFirst())
        if selector & 2 == 0 {
            let preface = UnsafeBufferPointer(
                start: HTTP2Connection.preface.utf8Start,
                count: HTTP2Connection.preface.utf8CodeUnitCount)
            let beginning = (role == .server ? Array(preface) : []) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
            received = beginning + received
        }
        let limits =
            selector & 4 == 0
            ? HTTP2Limits()
            : HTTP2Limits(
                streams: 3, resets: 4, streamWindow: 50, greatestStreamWindow: 1000,
                fieldBlockBytes: 16_384)
        let program = try Arrivals.read(received) { ends throws(FuzzCheckError) in
            let program = FrameProgram(role, limits)
            try program.receive(received, ends)
            return program.outcome
        }
        return !program.hasFailed && !program.found.isEmpty
    }
}

/// What a program has found and sent.
private struct FrameOutcome: Equatable {
    enum Found: Equatable {
        case head(UInt32, [UInt8], Bool)
        case trailers(UInt32, [UInt8])
        case discarded([UInt8])
        case content(UInt32, [UInt8], Bool)
        case other(HTTP2Connection.Event)
    }

    var found: [Found] = []
    var sent: [UInt8] = []
    var hasFailed = false
}

/// A program that uses a connection: it responds to some streams, resets others, and leaves others
/// alone, by their numbers.
private final class FrameProgram {
    private var connection: HTTP2Connection
    private let limits: HTTP2Limits
    private(set) var outcome = FrameOutcome()
    private var streams: [UInt32: StreamRef] = [:]
    /// Content that has not been taken.
    private var waiting: [UInt32: Int] = [:]
    /// Content that has been sent.
    private var sentBytes: [UInt32: Int] = [:]
    private var lastGoaway = UInt32.max

    init(_ role: HTTP2Connection.Role, _ limits: HTTP2Limits) {
        connection = HTTP2Connection(role: role, limits: limits, now: 0)
        self.limits = limits
        connection.tookControl(connection.control.count)
        request()
    }

    func receive(_ bytes: [UInt8], _ ends: [Int]) throws(FuzzCheckError) {
        var position = 0
        for end in ends {
            while true {
                let part = Array(bytes[position..<end])
                let received = connection.receive(part.span, now: 0)
                guard (0...part.count).contains(received.consumed) else {
                    throw FuzzCheckError("\(received) of \(part.count) bytes")
                }
                try handle(received.event, part, received.consumed)
                position += received.consumed
                try takeControl()
                try check()
                if received.event == .needMore { break }
            }
        }
    }

    // MARK: What the program does

    private func handle(
        _ event: HTTP2Connection.Event, _ bytes: [UInt8], _ consumed: Int
    ) throws(FuzzCheckError) {
        guard !outcome.hasFailed || [.needMore, .nothing].contains(event) else {
            throw FuzzCheckError("\(event) after the end")
        }
        switch event {
        case .needMore, .nothing: break
        case .controlIsFull: throw FuzzCheckError("control frames have been taken")
        case .headers(let ref, let block, let endsStream):
            guard streams[ref.id] == nil || streams[ref.id] == ref,
                !streams.values.contains(where: { $0.slot == ref.slot && $0.id != ref.id })
            else { throw FuzzCheckError("\(ref) of \(streams)") }
            streams[ref.id] = ref
            outcome.found.append(
                .head(ref.id, try content(block, bytes, consumed), endsStream))
            takeContent()
            respond(ref)
        case .trailers(let ref, let block):
            outcome.found.append(.trailers(ref.id, try content(block, bytes, consumed)))
        case .discarded(let block):
            outcome.found.append(.discarded(try content(block, bytes, consumed)))
        case .data(let ref, let range, let endsStream):
            guard streams[ref.id] == ref, range.upperBound <= consumed else {
                throw FuzzCheckError("\(event) of \(consumed) bytes")
            }
            waiting[ref.id, default: 0] += range.count
            if case .content(ref.id, let before, false) = outcome.found.last {
                outcome.found.removeLast()
                outcome.found.append(.content(ref.id, before + bytes[range], endsStream))
            } else {
                outcome.found.append(.content(ref.id, Array(bytes[range]), endsStream))
            }
        case .reset(let ref, _), .streamFailed(let ref, _):
            outcome.found.append(.other(event))
            guard streams[ref.id] == ref, connection.state(of: ref).isClosed else {
                throw FuzzCheckError("\(event), \(connection.state(of: ref))")
            }
            if ref.id & 8 == 0 { release(ref) }
        case .settings, .goaway:
            outcome.found.append(.other(event))
            request()
            send()
        case .windowGrew, .pingAnswered, .priority, .warned:
            outcome.found.append(.other(event))
            send()
        case .failed:
            outcome.found.append(.other(event))
            outcome.hasFailed = true
        }
    }

    private func content(
        _ block: HTTP2Connection.FieldBlock, _ bytes: [UInt8], _ consumed: Int
    ) throws(FuzzCheckError) -> [UInt8] {
        switch block {
        case .received(let range):
            guard range.upperBound <= consumed else { throw FuzzCheckError("\(range)") }
            return Array(bytes[range])
        case .assembled:
            guard connection.assembledBlock.count <= limits.fieldBlockBytes else {
                throw FuzzCheckError("a block of \(connection.assembledBlock.count) bytes")
            }
            return Array(connection.assembledBlock)
        }
    }

    private func request() {
        while connection.roomForStreams > 0, streams.count < 4,
            let ref = connection.open(now: 0)
        {
            streams[ref.id] = ref
            _ = connection.sendHead(ref, endsStream: ref.id & 2 == 0)
        }
    }

    private func respond(_ ref: StreamRef) {
        switch ref.id >> 1 & 7 {
        case 0:
            _ = connection.sendHead(ref, endsStream: true)
            release(ref)
        case 1:
            connection.reset(ref, .cancel)
        case 2:
            connection.reset(ref, .internalError)
            release(ref)
        case 3: _ = connection.expectContent(ref, 5, now: 0)
        case 4, 5:
            _ = connection.sendHead(ref, endsStream: false)
            connection.wantsToSend(ref)
        case 6: connection.interimHead(ref)
        default: break
        }
        send()
    }

    private func send() {
        for _ in 0..<100 {
            guard let ref = connection.nextToSend() else { return }
            let count = min(connection.sendable(ref), 100)
            let isLast = sentBytes[ref.id, default: 0] > 300
            _ = connection.sentData(ref, count, endsStream: isLast)
            sentBytes[ref.id, default: 0] += count
        }
    }

    /// Takes all content, when it is certain how much there is.
    private func takeContent() {
        for id in waiting.keys.sorted() {
            if let ref = streams[id], let count = waiting[id] { connection.consumed(ref, count) }
        }
        waiting = [:]
    }

    private func release(_ ref: StreamRef) {
        connection.released(ref)
        streams[ref.id] = nil
        waiting[ref.id] = nil
    }

    // MARK: What must hold

    private func takeControl() throws(FuzzCheckError) {
        let bytes = Array(connection.control)
        connection.tookControl(bytes.count)
        outcome.sent += bytes
        var position = 0
        while position + 9 <= bytes.count {
            let header = FrameHeader(reading: Array(bytes[position..<position + 9]).span.bytes)
            let start = position + 9
            position = start + header.length
            guard position <= bytes.count else { throw FuzzCheckError("\(header) is cut off") }
            switch header.type {
            case .windowUpdate, .goaway:
                let number = bytes[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }
                guard header.type == .windowUpdate else {
                    guard number <= lastGoaway else { throw FuzzCheckError("GOAWAY increased") }
                    lastGoaway = number
                    continue
                }
                guard (1...0x7FFF_FFFF).contains(number) else {
                    throw FuzzCheckError("a window is enlarged by \(number)")
                }
            case .settings, .ping, .resetStream: break
            default: throw FuzzCheckError("\(header) was sent")
            }
        }
        guard position == bytes.count else { throw FuzzCheckError("half a frame header") }
    }

    private func check() throws(FuzzCheckError) {
        guard connection.streamCount == streams.count,
            streams.count <= 2 * limits.streams
        else { throw FuzzCheckError("\(connection.streamCount) streams, \(streams)") }
        guard
            outcome.hasFailed || connection.nextToSend() == nil
                || connection.sendable(connection.nextToSend() ?? StreamRef(id: 0, slot: -1)) > 0
        else { throw FuzzCheckError("a stream should send, and cannot") }
    }
}
