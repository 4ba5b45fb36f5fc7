import CLinux
import Clocks
import Locking
import Synchronization

/// What the reporter's thread shares with those that report.
final class ReporterCore: Sendable {
    struct State: Sendable {
        var gate = ReportGate()
        /// Reports that the thread has not taken in yet.
        var inbox: [PinFailureReport] = []
        var settings: PinReporter.Settings
        /// Changes of the pins that the thread has not taken in yet.
        var changes: [PinChange] = []
        /// Reports that the thread has taken in and not written yet.
        var unkept = 0
        /// Reports that wait in memory, since they could not be written.
        var inMemory = 0
        /// Deliveries that have ended, and that the thread has not taken in yet.
        var ended: [Delivery] = []
        /// Reports that there was no room for in the inbox, and that nobody was told of yet.
        var refused = 0
        /// Reports that anybody has handed over, that were made of what was counted, or that an
        /// earlier process left.
        var accepted: UInt64 = 0
        /// Reports that were neither delivered nor written down at the end.
        var lost: UInt64 = 0
        var isEnding = false
        /// Nobody takes anything in any more.
        var isOver = false

        /// Takes a report for delivery; false: there is no room for it.
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

    /// A delivery that has ended.
    struct Delivery: Sendable {
        /// The report's file, its pinset, and where it went.
        var name: String
        var pinset: String
        var destination: String
        var result: PostResult
    }

    /// Other pins are in force.
    struct PinChange: Sendable {
        /// What had been counted until then.
        var counts: [String: PinUseTable.Count]
        /// The pins from then on.
        var pins: [String: [String]]
        /// When, in seconds since 1970.
        var wall: Int64
    }

    /// Reports that the thread may be behind with.
    static let inboxCapacity = 64

    let state: Locked<State>
    /// Signalled when the thread has something to do.
    let wake: SharedEvent
    /// Signalled when the process ends, and from then on.
    let end: SharedEvent
    let tell: @Sendable (ReportEvent) -> Void
    /// Whether the thread is done.
    let ended = Monitor(false)
    let waiting = Atomic<Int>(0)
    let waitingBytes = Atomic<Int>(0)
    private let counts = Locked([UInt64](repeating: 0, count: ReportResult.allCases.count))

    init(
        settings: PinReporter.Settings, wake: SharedEvent, end: SharedEvent,
        tell: @escaping @Sendable (ReportEvent) -> Void
    ) {
        state = Locked(State(settings: settings))
        self.wake = wake
        self.end = end
        self.tell = tell
    }

    var isEnding: Bool { state.withLock { $0.isEnding } }

    func add(_ result: ReportResult, _ count: Int = 1) {
        guard count > 0 else { return }
        counts.withLock { $0[result.rawValue] += UInt64(count) }
    }

    func count(of result: ReportResult) -> UInt64 { counts.withLock { $0[result.rawValue] } }

    /// A moment of the clock that monitors wait by.
    static func nanoseconds(after milliseconds: Int64) -> Int64 {
        Clock.monotonicNanoseconds() + milliseconds * 1_000_000
    }

    /// Waits until the thread is woken.
    func rest(milliseconds: Int64) {
        var wanted = pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&wanted, 1, Int32(clamping: max(0, milliseconds)))
    }

    /// Waits for the descriptor of a delivery; false: it was not ready in time, or the process
    /// ends.
    func wait(_ descriptor: Int32, _ events: Int16, milliseconds: Int64) -> Bool {
        var wanted = [
            pollfd(fd: descriptor, events: events, revents: 0),
            pollfd(fd: end.descriptor, events: Int16(POLLIN), revents: 0),
        ]
        let until = Clock.monotonicMilliseconds() + milliseconds
        var remainingTime = milliseconds
        while remainingTime > 0 {
            let count = poll(&wanted, 2, Int32(clamping: remainingTime))
            guard count < 0 else { return wanted[0].revents != 0 && wanted[1].revents == 0 }
            remainingTime = until - Clock.monotonicMilliseconds()
        }
        return false
    }

    /// Nobody takes anything in any more: counts and tells of what is lost, once.
    ///
    /// - Parameter others: beside what nobody has taken in: reports that are in no file.
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
        if lost > 0 { tell(.notKept(lost)) }
    }

    /// A delivery has ended.
    func note(_ delivery: Delivery) {
        state.withLock { $0.ended.append(delivery) }
        wake.signal()
    }
}
