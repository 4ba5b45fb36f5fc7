import Documents
import HTTPCore
import PinfoldEngine

/// One recording: what waits for its reader, and what that is told. A value.
///
/// What waits has a limit, within which client networks have shares: what is too much is dropped,
/// the oldest of the network of which the most waits, and counted.
struct Recording: Sendable {
    /// The most bytes that wait for a reader.
    static let waitingBytes = 32 << 20
    /// The most exchanges in a piece, and after how many bytes of them no other is added. A body
    /// with codings counts as what it may be without them, at the most.
    private static let pieceFlows = 64
    private static let pieceBytes = 1 << 20
    /// How many numbers a piece looks at, most of which may have been dropped: workers wait for it.
    private static let pieceNumbers: UInt64 = 10_000
    /// After how long a silence something is sent, so that both ends notice if the other is gone.
    static let silenceMilliseconds: Int64 = 15_000

    typealias Reply = @Sendable (LocalPiece) -> Void

    /// Why it ends although its reader is there.
    enum End: String, Sendable {
        /// Another configuration is in force, by which it is judged anew who may record what.
        case configuration
        /// The gateway shuts down, or another process serves.
        case bye
    }

    let options: RecordingOptions
    private let limit: Int
    private var waiting = ShareTable<UInt64, RecordedFlow>(limit: .max)
    private var waitingBytes = 0
    /// The number of the next exchange that is sent, and of the next that comes.
    private var next: UInt64 = 0
    private var last: UInt64 = 0
    /// How many were dropped that its reader has not been told of.
    private var dropped = 0
    /// Whether all workers record for it.
    private var isReady = false
    private var isGreeted = false
    private var end: End?
    private var isOver = false
    private var lastSent: Int64
    private var isSilent = false
    /// Its reader has everything that was sent, and waits.
    private var reply: Reply?
    /// Whether a piece is about to be written.
    private var isScheduled = false

    /// - Parameters:
    ///   - limit: the most bytes that wait.
    ///   - moment: of the monotonic clock, in milliseconds.
    init(_ options: RecordingOptions, limit: Int = Self.waitingBytes, at moment: Int64) {
        self.options = options
        self.limit = limit
        lastSent = moment
    }

    var isEnding: Bool { end != nil }

    /// All workers record for it.
    mutating func begin() { isReady = true }

    /// An exchange that it wants has ended.
    mutating func add(_ flow: RecordedFlow) {
        guard end == nil else { return }
        let client = IPNetwork(client: flow.flow.record.clientAddress)
        waiting.insert(flow, for: last, of: client, weight: flow.bytes)
        waitingBytes += flow.bytes
        last += 1
        while waitingBytes > limit, let evicted = waiting.removeNext() {
            waitingBytes -= evicted.bytes
            dropped += 1
        }
    }

    /// No other exchange is recorded; what waits is still sent.
    mutating func stop(because end: End) { if self.end == nil { self.end = end } }

    /// Its reader waits. Returns `false` if it has everything.
    mutating func wait(_ reply: @escaping Reply) -> Bool {
        guard !isOver else { return false }
        self.reply = reply
        return true
    }

    /// Something is sent to its reader soon, to see whether that is there.
    mutating func ask() { isSilent = true }

    /// Time has passed.
    mutating func tick(at moment: Int64) {
        if moment - lastSent >= Self.silenceMilliseconds { isSilent = true }
    }

    /// Whether a piece is now to be written, which nobody has begun to.
    mutating func isDue() -> Bool {
        let hasSomething =
            !isGreeted || !waiting.isEmpty || dropped > 0 || isEnding || isSilent
        guard reply != nil, !isScheduled, isReady || isEnding, hasSomething else { return false }
        isScheduled = true
        return true
    }

    /// The piece could not be written now.
    mutating func postpone() { isScheduled = false }

    /// The next piece for its reader; `nil` if it does not wait for any.
    /// - Parameter moment: of the monotonic clock, in milliseconds.
    mutating func takePiece(at moment: Int64) -> (piece: RecordingPiece, reply: Reply)? {
        isScheduled = false
        guard let reply = reply.take() else { return nil }
        var piece = RecordingPiece(options: options)
        piece.isFirst = !isGreeted
        isGreeted = true
        piece.dropped = dropped
        dropped = 0
        var bytes = 0
        let end = min(last, next + Self.pieceNumbers)
        while next < end, piece.flows.count < Self.pieceFlows, bytes < Self.pieceBytes {
            if let flow = waiting.remove(next) {
                waitingBytes -= flow.bytes
                bytes += flow.bytes + flow.codedBodies * options.bodyBytes
                piece.flows.append(flow)
            }
            next += 1
        }
        if waiting.isEmpty { next = last }
        if waiting.isEmpty, let reason = self.end {
            piece.end = reason
            isOver = true
        }
        (lastSent, isSilent) = (moment, false)
        return (piece, reply)
    }
}

/// What is sent to the reader of a recording at once: lines, each of which is a JSON object.
struct RecordingPiece: Sendable {
    let options: RecordingOptions
    var isFirst = false
    var dropped = 0
    var flows: [RecordedFlow] = []
    /// Why nothing follows; `nil` if something may.
    var end: Recording.End?

    /// The lines; an empty one if there is nothing to say.
    func text(_ names: FlowNames) -> String {
        var text = ""
        if isFirst {
            text += Self.line("hello", ["access": .string(options.isFull ? "full" : "masked")])
        }
        if dropped > 0 {
            text += Self.line("dropped", ["count": .number(DocumentNumber(dropped))])
        }
        for flow in flows {
            text += Self.line("entry", ["entry": HAREntry(flow, names, options).json])
        }
        if let end { text += Self.line("end", ["because": .string(end.rawValue)]) }
        return text.isEmpty ? "\n" : text
    }

    private static func line(_ type: String, _ members: DocumentDictionary) -> String {
        var line: DocumentDictionary = ["type": .string(type)]
        for member in members.members { line[member.key] = member.value }
        return "\(DocumentValue.dictionary(line))\n"
    }
}
