import Clocks
import EventLoop
import Locking
import Synchronization

/// The state shared by the reporter's thread and those that report.
final class ReporterCore: Sendable {
    struct State: Sendable {
        var gate = ReportGate()
        /// Reports that the thread has not processed yet.
        var inbox: [PinFailureReport] = []
        var settings: PinReporter.Settings
        /// Changes of the pins that the thread has not processed yet.
        var changes: [PinChange] = []
        /// Reports that the thread has accepted but not written yet.
        var unkept = 0
        /// Reports waiting in memory because they could not be written.
        var inMemory = 0
        /// Reports for which the inbox had no space, and that have not been reported yet.
        var refused = 0
        /// Reports that were submitted, made from counts, or left by an earlier process.
        var accepted: UInt64 = 0
        /// Reports that were neither delivered nor written to the disk at the end.
        var lost: UInt64 = 0
        var isEnding = false
        /// Whether nothing is accepted any more.
        var isOver = false

        /// Accepts a report for delivery; `false` if there is no space for it.
        mutating func accept(_ report: PinFailureReport, isBounded: Bool = true) -> Bool {
            accepted += 1
            guard !isOver else {
                lost += 1
                return true
            }
            guard inbox.count < ReporterCore.inboxCapacity || !isBounded else {
                refused += 1
                return false
            }
            inbox.append(report)
            return true
        }
    }

    /// A change of the pins in force.
    struct PinChange: Sendable {
        /// The counts until then.
        var counts: [String: PinUseTable.Count]
        /// The pins from then on.
        var pins: [String: [String]]
        /// When, in seconds since 1970.
        var wall: Int64
    }

    /// The maximum number of reports by which the thread may lag behind.
    static let inboxCapacity = 64

    let state: Locked<State>
    /// Tells the thread that it has something to do.
    let wakes: Mailbox<Void>
    let onEvent: @Sendable (ReportEvent) -> Void
    /// Whether the thread is done.
    let ended = Monitor(false)
    let waiting = Atomic<Int>(0)
    let waitingBytes = Atomic<Int>(0)
    private let counts = Locked([UInt64](repeating: 0, count: ReportResult.allCases.count))

    init(
        settings: PinReporter.Settings, wakes: Mailbox<Void>,
        onEvent: @escaping @Sendable (ReportEvent) -> Void
    ) {
        state = Locked(State(settings: settings))
        self.wakes = wakes
        self.onEvent = onEvent
    }

    var isEnding: Bool { state.withLock { $0.isEnding } }

    func add(_ result: ReportResult, _ count: Int = 1) {
        guard count > 0 else { return }
        counts.withLock { $0[result.rawValue] += UInt64(count) }
    }

    func count(of result: ReportResult) -> UInt64 { counts.withLock { $0[result.rawValue] } }

    /// A point in time on the clock used by monitors.
    static func nanoseconds(after milliseconds: Int64) -> Int64 {
        Clock.monotonicNanoseconds() + milliseconds * 1_000_000
    }

    /// Stops accepting anything: counts and reports what is lost, once.
    ///
    /// - Parameter others: returns the number of reports in no file, beyond those not processed
    ///   yet.
    func lose(_ others: (State) -> Int) {
        let lost = state.withLock { state in
            guard !state.isOver else { return 0 }
            let counted = state.gate.takeAll().count
            state.accepted += UInt64(counted)
            let lost = state.inbox.count + counted + others(state)
            state.lost += UInt64(lost)
            state.isOver = true
            return lost
        }
        if lost > 0 { onEvent(.notKept(lost)) }
    }
}
