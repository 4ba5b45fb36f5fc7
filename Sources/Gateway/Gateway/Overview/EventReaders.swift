import Documents
import HTTPCore
import PinfoldEngine

/// What the readers of events are told of, as it is at a moment.
struct ObservedState: Sendable {
    var flows: FlowRing.Snapshot
    var names: FlowNames
    /// The latest sample of the history, and what is in progress; `nil` before there is one.
    var pulse: OverviewPulse?
    var activity: ActivityReport
    var generation: UInt64
    var transfers: TransferRound.Report?
}

/// Those who read events (`GET /api/v1/events`), and how far each has come. A value: it is told
/// what there is to tell, and when, and returns what to send.
///
/// No reader has a queue. Exchanges are in the ring, where a reader's place is a number; of
/// everything else there is only what is so now. Who reads slowly thus finds fewer of the exchanges
/// still held, and is told how many it has missed.
struct EventReaders: Sendable {
    static let limit = 16
    /// The most exchanges in one piece; the next comes a moment later.
    static let flowsPerPiece = 100
    /// After how long a silence something is sent, so that both ends notice if the other is gone.
    static let silenceMilliseconds: Int64 = 15_000

    typealias Reply = @Sendable (LocalPiece) -> Void

    /// A reader's place.
    private struct Reader: Sendable {
        var isFull: Bool
        /// The last exchange that it knows; `nil` until it has been greeted.
        var sequence: UInt64?
        var sample: Int64?
        var activity: ActivityReport?
        var generation: UInt64?
        var transfers: Int64?
        var hadTransfers = false
        var lastSent: Int64
        /// It has everything that was sent, and waits.
        var reply: Reply?
        var isGreeted = false
    }

    private var readers: [UInt64: Reader] = [:]
    private var last: UInt64 = 0

    var count: Int { readers.count }
    /// Whether one of them has just come.
    var hasNew: Bool { readers.values.contains { !$0.isGreeted && $0.reply != nil } }

    /// Adds a reader; `nil` if there are too many.
    /// - Parameters:
    ///   - sequence: the last exchange that it has heard of; `nil` to begin with the next one.
    ///   - moment: of the monotonic clock, in milliseconds.
    mutating func add(isFull: Bool, after sequence: UInt64?, at moment: Int64) -> UInt64? {
        guard readers.count < Self.limit else { return nil }
        last += 1
        readers[last] = Reader(isFull: isFull, sequence: sequence, lastSent: moment)
        return last
    }

    mutating func remove(_ id: UInt64) { readers[id] = nil }

    /// A reader has everything that was sent. Returns `false` if it is none any more.
    mutating func wait(_ id: UInt64, _ reply: @escaping Reply) -> Bool {
        guard readers[id] != nil else { return false }
        readers[id]?.reply = reply
        return true
    }

    /// What is to be sent now, to those who wait.
    mutating func due(_ state: ObservedState, at moment: Int64) -> [(Reply, LocalPiece)] {
        var due: [(Reply, LocalPiece)] = []
        for (id, reader) in readers {
            guard let reply = reader.reply else { continue }
            var reader = reader
            var text = Self.text(for: &reader, state)
            if text.isEmpty, moment - reader.lastSent >= Self.silenceMilliseconds { text = ":\n\n" }
            guard !text.isEmpty else { continue }
            reader.lastSent = moment
            reader.reply = nil
            readers[id] = reader
            due.append((reply, .bytes(Array(text.utf8))))
        }
        return due
    }

    /// Ends all of them: those who wait are told, the others when they ask.
    mutating func end() -> [(Reply, LocalPiece)] {
        defer { readers = [:] }
        return readers.values.compactMap { reader in
            reader.reply.map { ($0, .bytes(Array(Self.event("bye", [:]).utf8))) }
        }
    }

    // MARK: The text

    private static func text(for reader: inout Reader, _ state: ObservedState) -> String {
        var text = ""
        if !reader.isGreeted {
            reader.isGreeted = true
            text += "retry: 1000\n\n"
            text += event(
                "hello",
                [
                    "access": .string(reader.isFull ? "full" : "masked"),
                    "capacity": .number(DocumentNumber(FlowRing.capacity)),
                    "newest": .number(DocumentNumber(state.flows.newest)),
                ])
            // An id of another process, or of no exchange, is no place in this one's ring.
            let known = reader.sequence.map { $0 <= state.flows.newest } ?? false
            if !known { reader.sequence = state.flows.newest }
        }
        text += flows(for: &reader, state)
        if let pulse = state.pulse, reader.sample != pulse.sample?.time {
            reader.sample = pulse.sample?.time
            text += event("overview", OverviewPulse.shape.json(pulse))
        }
        if reader.activity != state.activity {
            reader.activity = state.activity
            text += event("activity", ActivityReport.shape.json(state.activity))
        }
        if reader.generation != state.generation {
            if reader.generation != nil {
                text += event(
                    "configuration", ["generation": .number(DocumentNumber(state.generation))])
            }
            reader.generation = state.generation
        }
        if let report = state.transfers, reader.transfers != report.time {
            reader.transfers = report.time
            // Once more when nothing is under way any more.
            if report.count > 0 || reader.hadTransfers {
                let page = TransferPage(
                    report: report, names: state.names, isFull: reader.isFull)
                text += event("transfers", TransferPage.shape.json(page))
            }
            reader.hadTransfers = report.count > 0
        }
        return text
    }

    private static func flows(for reader: inout Reader, _ state: ObservedState) -> String {
        let from = reader.sequence ?? 0
        guard state.flows.newest > from else { return "" }
        let held = state.flows.flows.prefix { $0.sequence > from }
        let shown = held.prefix(flowsPerPiece)
        let dropped = state.flows.newest - from - UInt64(shown.count)
        reader.sequence = state.flows.newest
        var text = ""
        if dropped > 0 {
            text += event("dropped", ["count": .number(DocumentNumber(dropped))])
        }
        for flow in shown.reversed() {
            let view = FlowView(flow, state.names, isFull: reader.isFull)
            text += event("flow", FlowView.shape.json(view), id: flow.sequence)
        }
        return text
    }

    private static func event(_ name: String, _ data: DocumentDictionary) -> String {
        event(name, .dictionary(data))
    }

    /// JSON has no line end of its own: it is one line of data.
    private static func event(
        _ name: String, _ data: DocumentValue, id: UInt64? = nil
    ) -> String {
        let id = id.map { "id: \($0)\n" } ?? ""
        return "event: \(name)\n\(id)data: \(data)\n\n"
    }
}
