import Clocks
import HTTPCore
import Locking
import PinfoldEngine
import PinfoldMetrics
import Threads

/// Looks at the gateway from a thread of its own: every five seconds for the history of the last
/// minutes, and while somebody reads events, four times a second for these.
///
/// Workers do nothing for it but hold exchanges, and answer what is under way.
final class GatewayObserver: Sendable {
    /// Where what it looks at comes from; called on its thread.
    struct Source: Sendable {
        var reading: @Sendable () -> TrafficHistory.Reading?
        var hosts: @Sendable () -> [HostTraffic]
        var pinsets: @Sendable () -> [PinsetMetrics]
        var activity: @Sendable () -> ActivityReport
        var load: @Sendable () -> OverviewReport.Load
        var generation: @Sendable () -> UInt64
        /// Asks all workers for what is under way; `nil` before the start.
        var ask: @Sendable (TransferRound) -> Void
        var workers: Int
    }

    /// What has been observed.
    struct History: Sendable {
        var traffic = TrafficHistory()
        var hosts = HostHistory()
        var pins = PinHistory()
    }

    private struct State {
        var history = History()
        var readers = EventReaders()
        var transfers: TransferRound.Report?
        var rounds: [(round: TransferRound, end: Int64)] = []
        var askedForTransfers: Int64?
        /// When the next sample is due, of the monotonic clock, in milliseconds.
        var nextSample: Int64 = 0
        var isEnding = false
        var isClosed = false
    }

    static let tickMilliseconds: Int64 = 250
    static let transfersMilliseconds: Int64 = 2000
    /// How long a worker may take to say what is under way.
    private static let answerMilliseconds: Int64 = 1000
    /// The most questions for what is under way that wait; another is answered at once, empty.
    private static let roundsLimit = 32

    private let monitor = Monitor(State())
    private let source: Source
    private let flows: FlowAdministration
    private let thread = Locked<Thread?>(nil)

    init(_ flows: FlowAdministration, _ source: Source) {
        self.flows = flows
        self.source = source
    }

    // MARK: Its life

    func start() throws(Thread.StartError) {
        let made = try Thread(name: "observer", niceness: 5) { [self] in
            while look() {}
        }
        thread.withLock { $0 = made }
    }

    /// Readers are told that the gateway ends, or that another process serves, and no others are
    /// taken until ``takeReaders()``.
    func endReaders() {
        let due = monitor.withLock { state in
            state.isEnding = true
            return state.readers.end()
        }
        for (reply, piece) in due { reply(piece) }
    }

    func takeReaders() { monitor.withLock { $0.isEnding = false } }

    /// Ends the thread.
    func close() {
        endReaders()
        monitor.withLock { $0.isClosed = true }
        monitor.broadcast()
        thread.withLock { $0.take() }?.join()
    }

    // MARK: What it has seen

    var history: History { monitor.withLock { $0.history } }

    /// Asks the workers for what is under way.
    func transfers(_ completion: @escaping @Sendable (TransferRound.Report) -> Void) {
        let round = TransferRound(
            workers: source.workers, time: Clock.wallMilliseconds(), completion: completion)
        let end = Clock.monotonicMilliseconds() + Self.answerMilliseconds
        let isTaken = monitor.withLock { state in
            guard state.rounds.count < Self.roundsLimit, !state.isClosed else { return false }
            state.rounds.append((round, end))
            return true
        }
        guard isTaken else { return round.giveUp() }
        monitor.signal()
        source.ask(round)
    }

    // MARK: Readers

    /// Takes a reader of events; `nil` if there are too many, or the gateway ends.
    func read(isFull: Bool, after sequence: UInt64?) -> LocalPieces? {
        flows.watch()
        let now = Clock.monotonicMilliseconds()
        let id = monitor.withLock { state in
            state.isEnding ? nil : state.readers.add(isFull: isFull, after: sequence, at: now)
        }
        guard let id else { return nil }
        let place = ReaderPlace { [self] in monitor.withLock { $0.readers.remove(id) } }
        return { [self] reply in
            let (isReader, isNew) = monitor.withLock { state in
                (state.readers.wait(place.id(id), reply), state.readers.hasNew)
            }
            if !isReader { reply(.end) } else if isNew { monitor.signal() }
        }
    }

    // MARK: The thread

    private enum Step { case ends, looks }

    /// Waits until there is something to look at, and does. Returns `false` at the end.
    private func look() -> Bool {
        let next = Clock.monotonicNanoseconds() + Self.tickMilliseconds * 1_000_000
        let step = monitor.wait { state in
            let now = Clock.monotonicNanoseconds()
            if state.isClosed { return .done(Step.ends) }
            if state.readers.hasNew { return .done(.looks) }
            let isBusy = state.readers.count > 0 || !state.rounds.isEmpty
            let sample = state.nextSample * 1_000_000
            let due = isBusy ? min(next, sample) : sample
            return now >= due ? .done(.looks) : .until(due)
        }
        guard case .looks = step else { return false }
        let now = Clock.monotonicMilliseconds()
        observe(at: now)
        giveUpRounds(at: now)
        tellReaders(at: now)
        return true
    }

    private func observe(at now: Int64) {
        let (isDue, hostsAreDue) = monitor.withLock { state in
            let isDue = now >= state.nextSample
            if isDue { state.nextSample = now + TrafficHistory.intervalMilliseconds }
            return (isDue, isDue && state.history.hosts.isDue(at: now))
        }
        if isDue, let reading = source.reading() {
            let pinsets = source.pinsets()
            monitor.withLock { state in
                state.history.traffic.add(reading)
                state.history.pins.add(pinsets, at: reading.time)
            }
        }
        if hostsAreDue {
            let hosts = source.hosts()
            monitor.withLock { $0.history.hosts.add(hosts, at: now) }
        }
    }

    private func giveUpRounds(at now: Int64) {
        let late = monitor.withLock { state in
            let late = state.rounds.filter { $0.end <= now }.map(\.round)
            state.rounds.removeAll { $0.end <= now }
            return late
        }
        for round in late { round.giveUp() }
    }

    private func tellReaders(at now: Int64) {
        let (hasReaders, asks, transfers, sample) = monitor.withLock { state in
            let hasReaders = state.readers.count > 0
            let asks =
                hasReaders
                && state.askedForTransfers.map { now - $0 >= Self.transfersMilliseconds } ?? true
            if asks { state.askedForTransfers = now }
            return (hasReaders, asks, state.transfers, state.history.traffic.samples.last)
        }
        guard hasReaders else { return }
        flows.watch()
        if asks {
            self.transfers { [self] report in monitor.withLock { $0.transfers = report } }
        }
        let observed = ObservedState(
            flows: flows.ring.snapshot, names: flows.names,
            pulse: OverviewPulse(
                sample: sample, load: source.load(), activity: source.activity()),
            activity: source.activity(), generation: source.generation(), transfers: transfers)
        let due = monitor.withLock { $0.readers.due(observed, at: now) }
        for (reply, piece) in due { reply(piece) }
    }
}

/// A reader's place, which is given up with the last reference: that of the exchange that reads.
private final class ReaderPlace: Sendable {
    private let giveUp: @Sendable () -> Void

    init(giveUp: @escaping @Sendable () -> Void) { self.giveUp = giveUp }

    deinit { giveUp() }

    /// The number, which keeps the place as long as it is used.
    func id(_ id: UInt64) -> UInt64 { id }
}
