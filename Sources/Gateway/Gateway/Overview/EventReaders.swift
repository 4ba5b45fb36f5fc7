import Documents
import HTTPCore
import PinfoldEngine

/// What the readers of events are told of, as it is at a moment.
struct ObservedState: Sendable {
    /// The name of this process among those that number exchanges.
    var process: String
    var flows: FlowRing.Snapshot
    /// How many exchanges were not held, since the start.
    var leftOut: UInt64
    var names: FlowNames
    /// The latest sample of the history, and what is in progress.
    var pulse: OverviewPulse?
    var activity: ActivityReport
    var transfers: TransferRound.Report?
}

/// Those who read events (`GET /api/v1/events`), and how far each has come. A value: it is told
/// what there is to tell, and when, and returns what to send.
///
/// No reader has a queue. Exchanges are in the ring, where a reader's place is a number; of
/// everything else there is only what is so now. Who reads slowly thus finds fewer of the exchanges
/// still held, and is told how many it has missed.
///
/// What a reader is sent is written apart from the others' places, so that nobody who locks them
/// waits for it: ``waiting``, then ``EventWriting/write(_:at:)``, then ``sent(_:)``.
struct EventReaders: Sendable {
    static let limit = 16

    typealias Reply = @Sendable (LocalPiece) -> Void

    /// A reader's place.
    struct Reader: Sendable {
        var isFull: Bool
        /// The exchange that it says it has heard of last; `nil` to begin with the next one.
        var last: EventID?
        /// The last exchange that it knows.
        var sequence: UInt64 = 0
        /// How many were not held, as far as it has been told.
        var leftOut: UInt64 = 0
        var isGreeted = false
        var sample: Int64?
        var activity: ActivityReport?
        var transfers: Int64?
        var hadTransfers = false
        var lastSent: Int64
        /// It has everything that was sent, and waits.
        fileprivate var reply: Reply?
    }

    private var readers: [UInt64: Reader] = [:]
    private var last: UInt64 = 0

    var count: Int { readers.count }
    /// Whether one of them has just come.
    var hasNew: Bool { readers.values.contains { !$0.isGreeted && $0.reply != nil } }

    /// A reader's number, and the end of the one that made room for it.
    struct Place: Sendable {
        var id: UInt64
        var displaced: Reply?
    }

    /// Adds a reader; `nil` if there are too many. One who has proved to be an operator takes the
    /// place of one who has not.
    /// - Parameters:
    ///   - last: the exchange that it has heard of last; `nil` to begin with the next one.
    ///   - moment: of the monotonic clock, in milliseconds.
    mutating func add(isFull: Bool, after last: EventID?, at moment: Int64) -> Place? {
        var displaced: Reply?
        if readers.count >= Self.limit {
            guard isFull, let masked = readers.filter({ !$0.value.isFull }).keys.min() else {
                return nil
            }
            displaced = readers.removeValue(forKey: masked)?.reply
        }
        self.last += 1
        readers[self.last] = Reader(isFull: isFull, last: last, lastSent: moment)
        return Place(id: self.last, displaced: displaced)
    }

    mutating func remove(_ id: UInt64) { readers[id] = nil }

    /// A reader has everything that was sent. Returns `false` if it is none any more.
    mutating func wait(_ id: UInt64, _ reply: @escaping Reply) -> Bool {
        guard readers[id] != nil else { return false }
        readers[id]?.reply = reply
        return true
    }

    /// Those who wait for something.
    var waiting: [EventWriting] {
        readers.compactMap { id, reader in
            reader.reply == nil ? nil : EventWriting(id: id, reader: reader)
        }
    }

    /// The last exchange that all who wait know; `.max` if nobody waits.
    static func known(to waiting: [EventWriting]) -> UInt64 {
        waiting.reduce(.max) { known, writing in
            let reader = writing.reader
            return min(
                known, reader.isGreeted ? reader.sequence : reader.last?.sequence ?? .max)
        }
    }

    /// Something has been written for a reader. Returns whom to give it; `nil` if the reader is
    /// none any more.
    mutating func sent(_ writing: EventWriting) -> Reply? {
        guard let reply = readers[writing.id]?.reply else { return nil }
        readers[writing.id] = writing.reader
        readers[writing.id]?.reply = nil
        return reply
    }

    /// Ends all of them: those who wait are told why, the others when they ask.
    /// - Parameter text: the last event.
    mutating func end(saying text: String) -> [(Reply, LocalPiece)] {
        defer { readers = [:] }
        return readers.values.compactMap { reader in
            reader.reply.map { ($0, .bytes(Array(text.utf8))) }
        }
    }
}

/// The number of an exchange as a reader of events has it: with the process that has given it.
struct EventID: Sendable, Equatable {
    var process: String
    var sequence: UInt64

    init(process: String, sequence: UInt64) {
        (self.process, self.sequence) = (process, sequence)
    }

    /// Reads what ``text`` is; `nil` for anything else, which no process has given.
    init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let sequence = UInt64(parts[1]) else { return nil }
        self.init(process: String(parts[0]), sequence: sequence)
    }

    var text: String { "\(process)-\(sequence)" }
}

/// What is written for one reader.
struct EventWriting: Sendable {
    /// The most exchanges in one piece; the next comes a moment later.
    static let flowsPerPiece = 100
    /// After how long a silence something is sent, so that both ends notice if the other is gone.
    static let silenceMilliseconds: Int64 = 15_000

    let id: UInt64
    fileprivate(set) var reader: EventReaders.Reader
    private(set) var text = ""

    fileprivate init(id: UInt64, reader: EventReaders.Reader) {
        (self.id, self.reader) = (id, reader)
    }

    /// Writes what there is to tell. Returns `false` if there is nothing.
    /// - Parameter moment: of the monotonic clock, in milliseconds.
    mutating func write(_ state: ObservedState, at moment: Int64) -> Bool {
        if !reader.isGreeted { greet(state) }
        writeFlows(state)
        if reader.leftOut != state.leftOut {
            text += Self.event("leftOut", Self.count(state.leftOut &- reader.leftOut))
            reader.leftOut = state.leftOut
        }
        if let pulse = state.pulse, reader.sample != pulse.sample?.time {
            reader.sample = pulse.sample?.time
            text += Self.event("overview", OverviewPulse.shape.json(pulse))
        }
        if reader.activity != state.activity {
            reader.activity = state.activity
            text += Self.event("activity", ActivityReport.shape.json(state.activity))
        }
        if let report = state.transfers, reader.transfers != report.time {
            writeTransfers(report, state.names)
        }
        if text.isEmpty, moment - reader.lastSent >= Self.silenceMilliseconds { text = ":\n\n" }
        guard !text.isEmpty else { return false }
        reader.lastSent = moment
        return true
    }

    private mutating func greet(_ state: ObservedState) {
        reader.isGreeted = true
        reader.leftOut = state.leftOut
        text += "retry: 1000\n\n"
        text += Self.event(
            "hello",
            .dictionary([
                "access": .string(reader.isFull ? "full" : "masked"),
                "capacity": .number(DocumentNumber(FlowRing.capacity)),
                "newest": .number(DocumentNumber(state.flows.newest)),
            ]))
        // What another process has numbered is no place in this one's ring.
        let known = reader.last.flatMap { $0.process == state.process ? $0.sequence : nil }
        reader.sequence = min(known ?? .max, state.flows.newest)
    }

    /// The oldest first; what is left comes in the next piece.
    private mutating func writeFlows(_ state: ObservedState) {
        let from = reader.sequence
        guard state.flows.newest > from else { return }
        let held = state.flows.flows.prefix { $0.sequence > from }
        let shown = held.suffix(Self.flowsPerPiece)
        // Those after the last one shown are still to come, or have given way by then.
        let last = shown.count < held.count ? shown.first?.sequence ?? from : state.flows.newest
        let missed = last - from - UInt64(shown.count)
        reader.sequence = last
        if missed > 0 {
            text += Self.event("dropped", Self.count(missed))
        }
        for flow in shown.reversed() {
            let view = FlowView(flow, state.names, isFull: reader.isFull)
            let id = EventID(process: state.process, sequence: flow.sequence)
            text += Self.event("flow", FlowView.shape.json(view), id: id)
        }
    }

    private static func count(_ count: UInt64) -> DocumentValue {
        .dictionary(["count": .number(DocumentNumber(count))])
    }

    private mutating func writeTransfers(_ report: TransferRound.Report, _ names: FlowNames) {
        reader.transfers = report.time
        // Once more when nothing is under way any more.
        if report.count > 0 || reader.hadTransfers {
            let page = TransferPage(report, names, isFull: reader.isFull)
            text += Self.event("transfers", TransferPage.shape.json(page))
        }
        reader.hadTransfers = report.count > 0
    }

    // MARK: Events

    /// Another configuration is in force, by which it is judged anew who may read.
    static func configuration(_ generation: UInt64) -> String {
        event("configuration", .dictionary(["generation": .number(DocumentNumber(generation))]))
    }

    /// The gateway ends, or another process serves.
    static let bye = event("bye", .dictionary([:]))

    /// JSON has no line end of its own: it is one line of data.
    private static func event(
        _ name: String, _ data: DocumentValue, id: EventID? = nil
    ) -> String {
        let id = id.map { "id: \($0.text)\n" } ?? ""
        return "event: \(name)\n\(id)data: \(data)\n\n"
    }
}
