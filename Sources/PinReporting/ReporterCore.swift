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
        var isEnding = false
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
    let tell: @Sendable (ReportEvent) -> Void
    /// Whether the thread is done.
    let ended = Monitor(false)
    let waiting = Atomic<Int>(0)
    let waitingBytes = Atomic<Int>(0)
    private let counts = Locked([UInt64](repeating: 0, count: ReportResult.allCases.count))

    init(
        settings: PinReporter.Settings, wake: SharedEvent,
        tell: @escaping @Sendable (ReportEvent) -> Void
    ) {
        state = Locked(State(settings: settings))
        self.wake = wake
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

    /// Waits until a descriptor is ready or the thread is woken.
    ///
    /// - Parameter descriptor: nil: only the latter is waited for.
    /// - Returns: whether the descriptor is ready, and whether the thread was woken.
    func wait(
        _ descriptor: Int32?, _ events: Int16, milliseconds: Int64
    ) -> (isReady: Bool, isWoken: Bool) {
        var wanted = [pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)]
        if let descriptor { wanted.append(pollfd(fd: descriptor, events: events, revents: 0)) }
        let count = poll(&wanted, nfds_t(wanted.count), Int32(clamping: max(0, milliseconds)))
        guard count > 0 else { return (false, false) }
        return (wanted.count > 1 && wanted[1].revents != 0, wanted[0].revents != 0)
    }
}
