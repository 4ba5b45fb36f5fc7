import Clocks
import HTTPCore
import Locking
import PinfoldEngine
import PinfoldMetrics
import Threads

/// Looks at the gateway from a thread of its own: every five seconds for the history of the last
/// minutes, and while somebody reads events, four times a second for these.
///
/// Workers do nothing for it but hold exchanges, and answer what is under way. Nothing is written
/// while what it knows is locked, because workers lock it, too.
final class GatewayObserver: Sendable {
    /// Where what it looks at comes from; called on its thread.
    struct Source: Sendable {
        var reading: @Sendable () -> TrafficHistory.Reading?
        var hosts: @Sendable () -> [HostTraffic]
        var pinsets: @Sendable () -> [PinsetMetrics]
        var activity: @Sendable () -> ActivityReport
        /// Given how busy each worker was.
        var load: @Sendable ([Int]) -> OverviewReport.Load
        /// The number of the configuration that all workers use.
        var generation: @Sendable () -> UInt64
        /// Asks all workers for what is under way.
        var ask: @Sendable (TransferRound) -> Void
        var workers: Int
    }

    /// What has been observed.
    struct History: Sendable {
        var traffic = TrafficHistory()
        var hosts = HostHistory()
        var pins = PinHistory()
    }

    typealias Completion = @Sendable (TransferRound.Report) -> Void

    /// The question for what is under way that the workers are answering.
    private struct Asking {
        var round: TransferRound
        var end: Int64
        var waiting: [Completion]
    }

    private struct State {
        var history = History()
        var readers = EventReaders()
        /// Readers whose exchanges have not ended.
        var places = 0
        var transfers: TransferRound.Report?
        var asking: Asking?
        var askedForReaders: Int64?
        /// When the next sample is due, of the monotonic clock, in milliseconds.
        var nextSample: Int64 = 0
        var generation: UInt64?
        var isEnding = false
        var isClosed = false
    }

    static let tickMilliseconds: Int64 = 250
    static let transfersMilliseconds: Int64 = 2000
    /// How long a worker may take to say what is under way.
    private static let answerMilliseconds: Int64 = 1000
    /// The most who wait for that.
    private static let waitingLimit = 64

    private let monitor = Monitor(State())
    private let source: Source
    private let flows: FlowAdministration
    /// Recordings have their own thread, but the time is told to them here.
    private let recordings: Recordings
    /// Where reports are written: not where metrics are, which must come in time.
    private let reports = ThreadPool(name: "reports", threads: 1, niceness: 5, limit: 64)
    private let thread = Locked<Thread?>(nil)

    init(_ flows: FlowAdministration, _ recordings: Recordings, _ source: Source) {
        self.flows = flows
        self.recordings = recordings
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
            return state.readers.end(saying: EventWriting.bye)
        }
        for (reply, piece) in due { reply(piece) }
        recordings.end(because: .bye, isLast: true)
    }

    /// Whether all readers have been told, and have left, those of recordings as well.
    var hasNoReaders: Bool { monitor.withLock { $0.places == 0 } && recordings.isEmpty }

    func takeReaders() {
        monitor.withLock { $0.isEnding = false }
        recordings.takeReaders()
    }

    /// Ends the threads.
    func close() {
        endReaders()
        monitor.withLock { $0.isClosed = true }
        monitor.broadcast()
        thread.withLock { $0.take() }?.join()
        reports.close()
        recordings.close()
    }

    // MARK: What it has seen

    var history: History { monitor.withLock { $0.history } }

    /// Has a report written; returns `false`, and does nothing, if too many are waiting.
    func write(_ work: @escaping @Sendable () -> Void) -> Bool { reports.run(work) }

    /// Asks the workers for what is under way. Who asks while they are answering gets that answer.
    /// - Parameter completion: called on a worker's thread, or that of the observer.
    /// - Returns: `false` if too many wait; it is not called then.
    func transfers(_ completion: @escaping Completion) -> Bool {
        let round = TransferRound(workers: source.workers, time: Clock.wallMilliseconds()) {
            [self] in answered($0)
        }
        let end = Clock.monotonicMilliseconds() + Self.answerMilliseconds
        let (isTaken, asks) = monitor.withLock { state -> (Bool, Bool) in
            guard !state.isClosed else { return (false, false) }
            guard state.asking != nil else {
                state.asking = Asking(round: round, end: end, waiting: [completion])
                return (true, true)
            }
            guard (state.asking?.waiting.count ?? 0) < Self.waitingLimit else {
                return (false, false)
            }
            state.asking?.waiting.append(completion)
            return (true, false)
        }
        if asks {
            // A worker that hangs is waited for, but not forever.
            monitor.signal()
            source.ask(round)
        }
        return isTaken
    }

    private func answered(_ report: TransferRound.Report) {
        let waiting = monitor.withLock { state in
            state.transfers = report
            return state.asking.take()?.waiting ?? []
        }
        for completion in waiting { completion(report) }
    }

    // MARK: Readers

    /// What comes of a wish to read events.
    enum Reading {
        case reads(LocalPieces)
        case tooMany
        case ending
    }

    /// Takes a reader of events.
    func read(isFull: Bool, after last: EventID?) -> Reading {
        flows.watch()
        let now = Clock.monotonicMilliseconds()
        let (isEnding, taken) = monitor.withLock { state -> (Bool, EventReaders.Place?) in
            guard !state.isEnding else { return (true, nil) }
            let place = state.readers.add(isFull: isFull, after: last, at: now)
            if place != nil { state.places += 1 }
            return (false, place)
        }
        guard let taken else { return isEnding ? .ending : .tooMany }
        taken.displaced?(.end)
        let place = ReaderPlace(id: taken.id) { [self] id in
            monitor.withLock { state in
                state.readers.remove(id)
                state.places -= 1
            }
        }
        return .reads { [self] reply in
            let (isReader, isNew) = monitor.withLock { state in
                (state.readers.wait(place.id, reply), state.readers.hasNew)
            }
            if !isReader { reply(.end) } else if isNew { monitor.signal() }
        }
    }

    /// Begins a recording.
    func record(_ options: RecordingOptions) -> Recordings.Beginning {
        flows.watch()
        // What was recorded under another configuration ends, and not what begins under this one.
        followConfiguration()
        defer { monitor.signal() }
        return recordings.begin(options)
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
            let isBusy =
                state.readers.count > 0 || state.asking != nil || recordings.isActive
            let sample = state.nextSample * 1_000_000
            let due = isBusy ? min(next, sample) : sample
            return now >= due ? .done(.looks) : .until(due)
        }
        guard case .looks = step else { return false }
        let now = Clock.monotonicMilliseconds()
        observe(at: now)
        giveUpRound(at: now)
        followConfiguration()
        tellReaders(at: now)
        if recordings.tick(at: now) { flows.watch() }
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

    private func giveUpRound(at now: Int64) {
        let late = monitor.withLock { state in
            state.asking.flatMap { $0.end <= now ? $0.round : nil }
        }
        late?.giveUp()
    }

    /// With another configuration it is judged anew who may read what: readers ask again.
    private func followConfiguration() {
        let generation = source.generation()
        let due = monitor.withLock { state -> [(EventReaders.Reply, LocalPiece)]? in
            defer { state.generation = generation }
            guard let former = state.generation, former != generation else { return nil }
            return state.readers.end(saying: EventWriting.configuration(generation))
        }
        guard let due else { return }
        for (reply, piece) in due { reply(piece) }
        recordings.end(because: .configuration)
    }

    private func tellReaders(at now: Int64) {
        let (waiting, hasReaders, asks) = monitor.withLock { state in
            let hasReaders = state.readers.count > 0
            let asks =
                hasReaders
                && state.askedForReaders.map { now - $0 >= Self.transfersMilliseconds } ?? true
            if asks { state.askedForReaders = now }
            return (state.readers.waiting, hasReaders, asks)
        }
        guard hasReaders else { return }
        flows.watch()
        if asks { _ = transfers { _ in } }
        guard !waiting.isEmpty else { return }
        let (transfers, sample) = monitor.withLock {
            ($0.transfers, $0.history.traffic.samples.last)
        }
        let activity = source.activity()
        let observed = ObservedState(
            process: flows.ring.process,
            flows: flows.ring.snapshot(after: EventReaders.known(to: waiting)),
            leftOut: flows.leftOut, names: flows.names,
            pulse: OverviewPulse(
                sample: sample, load: source.load(sample?.busy ?? []), activity: activity),
            activity: activity, transfers: transfers)
        for writing in waiting {
            var writing = writing
            guard writing.write(observed, at: now) else { continue }
            let written = writing
            let reply = monitor.withLock { $0.readers.sent(written) }
            reply?(.bytes(Array(written.text.utf8)))
        }
    }
}

/// A reader's place, which is given up with the last reference: that of the exchange that reads.
private final class ReaderPlace: Sendable {
    let id: UInt64
    private let giveUp: @Sendable (UInt64) -> Void

    init(id: UInt64, giveUp: @escaping @Sendable (UInt64) -> Void) {
        self.id = id
        self.giveUp = giveUp
    }

    deinit { giveUp(id) }
}
