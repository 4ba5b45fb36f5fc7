import Locking
import Synchronization

/// A limit of the process whose permits its workers take: for connections to one origin, or to all.
///
/// A worker that gets no permit is queued, at most once. A permit that is given back goes directly
/// to the first worker in the queue, so that no later one can take it meanwhile; a worker that has
/// less than its share comes before the others.
///
/// Whether a worker waits can be read without the lock: that is all that using an idle connection
/// costs.
package final class SharedLimit: Sendable {
    /// The result of asking for a permit.
    enum PermitResult: Equatable {
        case taken
        /// The worker is queued; `isNew`: it was not before.
        case waits(isNew: Bool)
    }

    private struct Waiter {
        let worker: Int
        let isStarved: Bool
    }

    private struct State {
        var taken = 0
        var queue: [Waiter] = []
        /// Whether more permits are taken than there are, because the limit was lowered.
        var isOver = false
    }

    private let state = Locked(State())
    private let waiting = Atomic<Int>(0)
    private let starved = Atomic<Int>(0)
    private let over = Atomic<Bool>(false)
    /// Exchanges of all workers that are waiting for a connection.
    package let waitingExchanges = Atomic<Int>(0)
    /// Connections that carry a request whose content has not all arrived.
    let uploads = Atomic<Int>(0)

    package init() {}

    /// Whether an unused permit is wanted: a worker is queued, or more are taken than allowed.
    var isWaitedFor: Bool { waiting.load(ordering: .relaxed) > 0 }

    /// Whether more permits are taken than allowed, because the limit was lowered.
    var isOver: Bool { over.load(ordering: .relaxed) }

    /// Whether a worker that has less than its share is queued.
    var hasStarved: Bool { starved.load(ordering: .relaxed) > 0 }

    /// What is used of limits that are alike.
    package struct Use: Sendable, Equatable {
        /// The most permits that are taken of one of them.
        package var connections = 0
        /// The most exchanges that wait for one of them.
        package var waiting = 0

        package init() {}
    }

    /// The permits taken, including those that were handed over to a worker.
    package var taken: Int { state.withLock { $0.taken } }

    /// Takes a permit if there is one.
    func take(limit: Int) -> Bool {
        state.withLock { state in
            guard state.taken < limit else { return false }
            state.taken += 1
            return true
        }
    }

    /// Takes a permit, or queues the worker for one.
    /// - Parameter isStarved: whether the worker has less than its share.
    func take(limit: Int, orWaitAs worker: Int, isStarved: Bool) -> PermitResult {
        state.withLock { state in
            if state.taken < limit {
                state.taken += 1
                return .taken
            }
            if state.queue.contains(where: { $0.worker == worker }) { return .waits(isNew: false) }
            state.queue.append(Waiter(worker: worker, isStarved: isStarved))
            publish(state)
            return .waits(isNew: true)
        }
    }

    /// Gives a permit back. Returns the worker that it was handed over to, if any; while more are
    /// taken than allowed, nobody gets it.
    func giveBack(limit: Int) -> Int? {
        state.withLock { state in
            defer { publish(state) }
            guard !state.queue.isEmpty, state.taken <= limit else {
                state.taken -= 1
                assert(state.taken >= 0)
                state.isOver = state.taken > limit
                return nil
            }
            state.isOver = false
            let next = state.queue.firstIndex(where: \.isStarved) ?? 0
            return state.queue.remove(at: next).worker
        }
    }

    /// Changes the number of permits.
    func adapt(to limit: Int) {
        state.withLock { state in
            state.isOver = state.taken > limit
            publish(state)
        }
    }

    /// Removes the worker from the queue.
    func leave(_ worker: Int) {
        state.withLock { state in
            state.queue.removeAll { $0.worker == worker }
            publish(state)
        }
    }

    /// Whether another worker that has less than its share is queued.
    func hasStarved(otherThan worker: Int) -> Bool {
        state.withLock { $0.queue.contains { $0.isStarved && $0.worker != worker } }
    }

    /// Publishes what is read without the lock.
    private func publish(_ state: State) {
        over.store(state.isOver, ordering: .relaxed)
        waiting.store(state.queue.count + (state.isOver ? 1 : 0), ordering: .relaxed)
        starved.store(state.queue.count(where: \.isStarved), ordering: .relaxed)
    }
}

/// How the permits of a limit are shared among workers that all need them.
struct FairShare {
    /// The total number of permits.
    let limit: Int
    let workers: Int

    /// The share that each worker can rely on.
    var share: Int { max(1, limit / max(1, workers)) }

    /// Whether a worker with this many permits has less than its share.
    func isStarved(_ own: Int) -> Bool { own < share }

    /// Whether a worker that needs its connections itself gives one up for a worker that has less
    /// than its share. With fewer permits than workers, they take turns.
    func givesWay(_ own: Int) -> Bool { own > share || limit < workers }
}

/// The limits of all origins, by their identity, whatever policy they are under: a server sees
/// connections, not policies. A limit is kept as long as an origin uses it.
final class OriginLimits: Sendable {
    private struct Entry {
        weak var limit: SharedLimit?
    }

    private struct State {
        var entries: [Origin.Key: Entry] = [:]
        /// The number of entries at which unused ones are searched for.
        var sweepAt = 1024
    }

    private let state = Locked(State())

    func limit(of key: Origin.Key) -> SharedLimit {
        let key = key.ofLimit
        return state.withLock { state in
            if let known = state.entries[key]?.limit { return known }
            let made = SharedLimit()
            state.entries[key] = Entry(limit: made)
            if state.entries.count >= state.sweepAt {
                state.entries = state.entries.filter { $0.value.limit != nil }
                state.sweepAt = max(1024, state.entries.count * 2)
            }
            return made
        }
    }

    /// The number of entries.
    var count: Int { state.withLock { $0.entries.count } }

    /// The most connections to one origin, and the most exchanges that wait for one.
    var greatestUse: SharedLimit.Use {
        let limits = state.withLock { $0.entries.values.compactMap(\.limit) }
        return limits.reduce(into: SharedLimit.Use()) { use, limit in
            use.connections = max(use.connections, limit.taken)
            use.waiting = max(use.waiting, limit.waitingExchanges.load(ordering: .relaxed))
        }
    }
}
