import Locking
import Synchronization

/// A limit of the process that its workers take places of: connections to one origin, or to all.
///
/// Who finds no place stands in line, a worker once at most. A place that is given back goes to the
/// first in the line directly, so that no newcomer takes it meanwhile; a worker that has none while
/// others have their share comes before the others.
///
/// Whether anybody waits can be asked without the lock: that is all that the use of an idle
/// connection costs.
package final class SharedLimit: Sendable {
    /// What became of asking for a place.
    enum Taking: Equatable {
        case taken
        /// The worker stands in line; `isNew`: since now.
        case waits(isNew: Bool)
    }

    private struct Waiter {
        let worker: Int
        let isStarved: Bool
    }

    private struct State {
        var taken = 0
        var queue: [Waiter] = []
        /// More places are taken than there are since the limit was lowered.
        var isOver = false
    }

    private let state = Locked(State())
    private let waiting = Atomic<Int>(0)
    private let starved = Atomic<Int>(0)
    private let over = Atomic<Bool>(false)
    /// Exchanges of all workers that wait for a connection.
    package let waitingExchanges = Atomic<Int>(0)
    /// Connections that carry a request whose content has not all arrived.
    let uploads = Atomic<Int>(0)

    /// Whether a place that is not used is wanted: a worker stands in line, or there are more taken
    /// than there may be.
    var isWaitedFor: Bool { waiting.load(ordering: .relaxed) > 0 }

    /// Whether more places are taken than there may be: the limit was lowered.
    var isOver: Bool { over.load(ordering: .relaxed) }

    /// Whether a worker stands in line that has less than its share.
    var hasStarved: Bool { starved.load(ordering: .relaxed) > 0 }

    /// Places that are taken, those that were handed over to a worker included.
    package var taken: Int { state.withLock { $0.taken } }

    /// Takes a place if there is one.
    func take(limit: Int) -> Bool {
        state.withLock { state in
            guard state.taken < limit else { return false }
            state.taken += 1
            return true
        }
    }

    /// Takes a place, or stands in line for one.
    /// - Parameter isStarved: the worker has less than its share.
    func take(limit: Int, orWaitAs worker: Int, isStarved: Bool) -> Taking {
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

    /// Gives a place back. The worker that it has been handed over to, if any: while more are taken
    /// than there may be, nobody gets it.
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

    /// There are as many places from now on.
    func adapt(to limit: Int) {
        state.withLock { state in
            state.isOver = state.taken > limit
            publish(state)
        }
    }

    /// The worker stands in line no longer.
    func leave(_ worker: Int) {
        state.withLock { state in
            state.queue.removeAll { $0.worker == worker }
            publish(state)
        }
    }

    /// Whether another worker stands in line, with less than its share.
    func hasStarved(otherThan worker: Int) -> Bool {
        state.withLock { $0.queue.contains { $0.isStarved && $0.worker != worker } }
    }

    /// What readers without the lock see.
    private func publish(_ state: State) {
        over.store(state.isOver, ordering: .relaxed)
        waiting.store(state.queue.count + (state.isOver ? 1 : 0), ordering: .relaxed)
        starved.store(state.queue.count(where: \.isStarved), ordering: .relaxed)
    }
}

/// How the places of a limit are shared among workers that all want them.
struct FairShare {
    /// Places in all.
    let limit: Int
    let workers: Int

    /// What each worker may count on.
    var share: Int { max(1, limit / max(1, workers)) }

    /// Whether a worker with so many places has less than it may count on.
    func isStarved(_ own: Int) -> Bool { own < share }

    /// Whether a worker that needs its connections itself gives one up for a worker that has less
    /// than its share. With fewer places than workers they take turns.
    func givesWay(_ own: Int) -> Bool { own > share || limit < workers }
}

/// The limits of all origins, found by what tells origins apart, whatever policy they are under: a
/// server sees connections, not policies. Kept as long as an origin uses them.
final class OriginLimits: Sendable {
    private struct Entry {
        weak var limit: SharedLimit?
    }

    private struct State {
        var entries: [Origin.Key: Entry] = [:]
        /// At how many entries those without use are looked for.
        var sweepAt = 1024
    }

    private let state = Locked(State())

    func limit(of key: Origin.Key) -> SharedLimit {
        state.withLock { state in
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

    /// How many are remembered.
    var count: Int { state.withLock { $0.entries.count } }
}
