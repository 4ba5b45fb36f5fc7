import Clocks
import HTTPCore
import Locking
import PinfoldEngine
import PinfoldMetrics
import Synchronization
import Threads

/// The recordings that are under way (`GET /api/v1/record`). One lasts as long as the exchange that
/// reads it: when its client leaves, nothing is left of it.
///
/// Workers add the exchanges that end; a thread of its own writes them as JSON, when a reader has
/// everything that was sent before.
package final class Recordings: Sendable {
    /// The most at a time.
    static let limit = 4
    /// The memory for the bodies of all of them.
    private static let contentBytes = 64 << 20
    /// How long a worker that hangs is waited for until a recording begins without it.
    private static let beginMilliseconds: Int64 = 1000

    private struct State {
        var recordings: [UInt64: Recording] = [:]
        /// Until when those that begin wait for all workers.
        var beginning: [UInt64: Int64] = [:]
        var last: UInt64 = 0
        var isEnding = false
    }

    private let state = Locked(State())
    private let active = Atomic<Bool>(false)
    private let keepsContents = Atomic<Bool>(false)
    private let room = ContentRoom(limit: Recordings.contentBytes)
    private let writers = ThreadPool(name: "recorder", threads: 1, niceness: 5, limit: 16)
    private let labels: RouteLabels
    private let workers: Int
    private let tellWorkers: @Sendable (RecordingRound) -> Void

    /// - Parameters:
    ///   - labels: the names by which exchanges are labelled.
    ///   - workers: how many workers there are.
    ///   - tellWorkers: has all of them follow what is recorded, and answer the round.
    package init(
        labels: RouteLabels, workers: Int = 0,
        tellWorkers: @escaping @Sendable (RecordingRound) -> Void = { _ in }
    ) {
        self.labels = labels
        self.workers = workers
        self.tellWorkers = tellWorkers
    }

    // MARK: Its readers

    /// What comes of a wish to record.
    enum Beginning {
        case records(LocalPieces)
        case tooMany
        case ending
    }

    /// Begins a recording, which lasts as long as there is a reference to its pieces.
    func begin(_ options: RecordingOptions) -> Beginning {
        let now = Clock.monotonicMilliseconds()
        let (isEnding, id) = state.withLock { state -> (Bool, UInt64?) in
            guard !state.isEnding else { return (true, nil) }
            guard state.recordings.count < Self.limit else { return (false, nil) }
            state.last += 1
            state.recordings[state.last] = Recording(options, at: now)
            state.beginning[state.last] = now + Self.beginMilliseconds
            note(state)
            return (false, state.last)
        }
        guard let id else {
            if isEnding { return .ending }
            findLeft()
            return .tooMany
        }
        let place = RecordingPlace(id: id) { [self] in leave($0) }
        tellWorkers(RecordingRound(workers: workers) { [self] in isFollowed(id) })
        return .records { [self] reply in
            let isReader = state.withLock { $0.recordings[place.id]?.wait(reply) ?? false }
            if isReader { write(place.id) } else { reply(.end) }
        }
    }

    /// Sends something to all readers: those that have left while there was nothing to send give up
    /// their places then.
    private func findLeft() {
        let ids = state.withLock { state in
            for id in state.recordings.keys { state.recordings[id]?.ask() }
            return Array(state.recordings.keys)
        }
        for id in ids { write(id) }
    }

    private func leave(_ id: UInt64) {
        state.withLock { state in
            state.recordings[id] = nil
            state.beginning[id] = nil
            note(state)
        }
        tellWorkers(RecordingRound(workers: workers) {})
    }

    /// What workers ask for each exchange that ends, or begins.
    private func note(_ state: State) {
        let recordings = state.recordings.values
        active.store(!recordings.isEmpty, ordering: .relaxed)
        keepsContents.store(
            recordings.contains { $0.options.bodyBytes > 0 }, ordering: .relaxed)
    }

    /// All workers record for it.
    private func isFollowed(_ id: UInt64) {
        state.withLock { state in
            state.beginning[id] = nil
            state.recordings[id]?.begin()
        }
        write(id)
    }

    // MARK: Workers

    /// Whether anything is recorded.
    var isActive: Bool { active.load(ordering: .relaxed) }
    /// Whether bodies may be.
    var wantsContents: Bool { keepsContents.load(ordering: .relaxed) }
    /// The bytes that the bodies take which are kept.
    var contentBytes: Int { room.taken }

    private var all: [(id: UInt64, options: RecordingOptions)] {
        state.withLock { state in
            state.recordings.compactMap { $1.isEnding ? nil : ($0, $1.options) }
        }
    }

    /// Where the bodies of an exchange are kept that has just begun; `nil` if no recording wants
    /// them.
    func contents(of flow: HeldFlow) -> KeptContents? {
        let wanted = all.lazy.map(\.options)
            .filter { $0.bodyBytes > 0 && $0.filter.mayAccept(flow) }.map(\.bodyBytes).max()
        return wanted.map {
            let network = IPNetwork(client: flow.record.clientAddress)
            return KeptContents(limit: $0, lease: room.lease(for: network))
        }
    }

    /// An exchange has ended.
    func add(_ flow: HeldFlow, _ contents: KeptContents?) {
        let view = FlowView(flow, names, isFull: true)
        let wanting = all.filter { $0.options.filter.accepts(view) }
        guard !wanting.isEmpty else { return }
        let recorded = RecordedFlow(flow, contents)
        state.withLock { state in
            for (id, _) in wanting { state.recordings[id]?.add(recorded) }
        }
        for (id, _) in wanting { write(id) }
    }

    private var names: FlowNames {
        FlowNames(listeners: labels.listenerSnapshot, hosts: labels.snapshot)
    }

    // MARK: Writing

    /// Has a piece written if one is due.
    private func write(_ id: UInt64) {
        guard state.withLock({ $0.recordings[id]?.isDue() ?? false }) else { return }
        let isTaken = writers.run { [self] in
            let now = Clock.monotonicMilliseconds()
            let taken = state.withLock { $0.recordings[id]?.takePiece(at: now) }
            guard let (piece, reply) = taken else { return }
            reply(.bytes(Array(piece.text(names).utf8)))
        }
        if !isTaken { state.withLock { $0.recordings[id]?.postpone() } }
    }

    // MARK: Its life

    /// Time has passed. Returns whether anything is recorded.
    func tick(at now: Int64) -> Bool {
        let ids = state.withLock { state in
            for (id, end) in state.beginning where end <= now {
                state.beginning[id] = nil
                state.recordings[id]?.begin()
            }
            for id in state.recordings.keys { state.recordings[id]?.tick(at: now) }
            return Array(state.recordings.keys)
        }
        for id in ids { write(id) }
        return !ids.isEmpty
    }

    /// Ends all of them: their readers get what was recorded until now, and are told why.
    /// - Parameter isLast: whether no others are taken until ``takeReaders()``.
    func end(because end: Recording.End, isLast: Bool = false) {
        let ids = state.withLock { state in
            if isLast { state.isEnding = true }
            for id in state.recordings.keys { state.recordings[id]?.stop(because: end) }
            return Array(state.recordings.keys)
        }
        for id in ids { write(id) }
    }

    func takeReaders() { state.withLock { $0.isEnding = false } }

    /// Whether all readers have left.
    var isEmpty: Bool { state.withLock { $0.recordings.isEmpty } }

    /// Ends the thread.
    func close() { writers.close() }
}

/// One message to all workers that what is recorded has changed, and their answers.
package final class RecordingRound: Sendable {
    private let pending: Atomic<Int>
    private let completion: @Sendable () -> Void

    /// - Parameter completion: called once, when all workers have answered, on the last one's
    ///   thread; at once if there are none.
    init(workers: Int, completion: @escaping @Sendable () -> Void) {
        pending = Atomic(workers)
        self.completion = completion
        if workers == 0 { completion() }
    }

    /// A worker follows.
    func answer() {
        if pending.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { completion() }
    }
}

/// A recording's place, which is given up with the last reference: that of the exchange that reads.
private final class RecordingPlace: Sendable {
    let id: UInt64
    private let giveUp: @Sendable (UInt64) -> Void

    init(id: UInt64, giveUp: @escaping @Sendable (UInt64) -> Void) {
        self.id = id
        self.giveUp = giveUp
    }

    deinit { giveUp(id) }
}
