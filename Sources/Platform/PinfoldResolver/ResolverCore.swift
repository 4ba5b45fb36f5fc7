import CLinux
import HTTPCore
import Locking

/// The state shared by the callers' threads and the resolver's: one lock over the answers and the
/// waiting callers, and an eventfd that wakes the resolver's thread. Completions are called without
/// the lock.
final class ResolverCore: Sendable {
    /// A caller waiting for an answer.
    struct Waiter: Sendable {
        var completion: Resolver.Completion?
        var later: (@Sendable (ResolvedAnswer) -> Void)?
    }

    /// Work for the thread.
    struct Work: Sendable {
        var names: [DomainName] = []
        var isClosed = false
    }

    private struct Pending: Sendable {
        var waiters: [Waiter] = []
        /// One family's addresses, handed out while the other's are awaited.
        var part: ResolvedAnswer?
        var startedAtMilliseconds: Int64
        let ticket: LookupShares.Ticket
    }

    private struct State: Sendable {
        var cache: AnswerCache
        var pending: [DomainName: Pending] = [:]
        var shares: LookupShares
        var work = Work()
        var waiting = 0
        var hostsCheckedAtMilliseconds: Int64
        var isHostsCheckRequested = false
        var statistics = ResolverStatistics()
    }

    let options: ResolverOptions
    /// Readable when there is work.
    let wakeDescriptor: Int32
    private let state: Locked<State>

    init(options: ResolverOptions) throws(Resolver.StartError) {
        self.options = options
        wakeDescriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        state = Locked(
            State(
                cache: AnswerCache(maximumEntries: options.maximumEntries),
                shares: LookupShares(permits: options.maximumPending),
                hostsCheckedAtMilliseconds: options.clock()))
        guard wakeDescriptor >= 0 else { throw .system(errno: __errno_location().pointee) }
    }

    deinit {
        if wakeDescriptor >= 0 { CLinux.close(wakeDescriptor) }
    }

    // MARK: The callers' side

    /// The cached answer, if there is a valid one.
    func cached(_ name: DomainName, now: Int64) -> ResolveResult? {
        let (result, wakes) = state.withLock { state -> (ResolveResult?, Bool) in
            // A busy cache must not hide a changed hosts file: the thread checks it from time to
            // time, when asked to from here, so that an idle resolver sleeps.
            let age = now - state.hostsCheckedAtMilliseconds
            let isCheckDue = age >= options.hostsCheckMilliseconds
            let wakes = isCheckDue && !state.isHostsCheckRequested
            state.isHostsCheckRequested = isCheckDue
            guard let result = state.cache.find(name, nowMilliseconds: now) else {
                return (nil, wakes)
            }
            switch result {
            case .resolved(let answer):
                // Not from a file that may have changed: the lookup that follows rereads it.
                if isCheckDue, answer.source == .hosts { return (nil, wakes) }
                state.statistics.cacheHits += 1
            case .failed:
                state.statistics.negativeCacheHits += 1
            }
            return (result, wakes)
        }
        if wakes { wake() }
        return result
    }

    /// Joins or starts the lookup of a name. Returns the answer if it is available at once.
    /// - Parameter client: the client that it is for; a lookup that is joined counts for whoever
    ///   started it.
    func enter(_ name: DomainName, _ waiter: Waiter, client: IPNetwork? = nil) -> ResolveResult? {
        let now = options.clock()
        var wakes = false
        let result = state.withLock { state -> ResolveResult? in
            guard !state.work.isClosed else { return .failed(.cancelled) }
            let earlier = state.pending[name]
            guard state.waiting < options.maximumWaiting else {
                state.statistics.add(failure: .overloaded)
                return .failed(.overloaded)
            }
            if earlier == nil {
                let ticket: LookupShares.Ticket
                switch state.shares.begin(name, client: client, nowMilliseconds: now) {
                case .success(let made): ticket = made
                case .failure(let failure):
                    state.statistics.add(failure: failure)
                    return .failed(failure)
                }
                state.statistics.lookups += 1
                state.pending[name] = Pending(
                    waiters: [waiter], startedAtMilliseconds: now, ticket: ticket)
                state.waiting += 1
                state.work.names.append(name)
                wakes = state.work.names.count == 1
                return nil
            }
            state.statistics.merged += 1
            guard let part = earlier?.part else {
                state.pending[name]?.waiters.append(waiter)
                state.waiting += 1
                return nil
            }
            if let later = waiter.later {
                state.pending[name]?.waiters.append(Waiter(completion: nil, later: later))
                state.waiting += 1
            }
            return .resolved(part)
        }
        if wakes { wake() }
        return result
    }

    /// Counts a caller whose name was refused.
    func refuseName() {
        state.withLock { $0.statistics.add(failure: .badName) }
    }

    func statistics() -> ResolverStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.entries = state.cache.count
            statistics.pending = state.pending.count
            statistics.pendingLimit = options.maximumPending
            statistics.waiting = state.waiting
            return statistics
        }
    }

    /// Tells the thread to end; no lookups are accepted afterwards.
    func close() {
        state.withLock { $0.work.isClosed = true }
        wake()
    }

    /// Wakes the thread.
    func wake() {
        var one: UInt64 = 1
        // This fails only when the counter is full, and then the thread is awake.
        _ = write(wakeDescriptor, &one, 8)
    }

    // MARK: The thread's side

    /// Takes the work that has accumulated since the last time.
    func takeWork() -> Work {
        state.withLock { state in
            let work = state.work
            state.work.names = []
            return work
        }
    }

    /// Records a check of the hosts file; if it changed, all cached answers are dropped.
    func noteHosts(changed: Bool, now: Int64) {
        state.withLock { state in
            state.hostsCheckedAtMilliseconds = now
            state.isHostsCheckRequested = false
            if changed { state.cache.removeAll() }
        }
    }

    /// Counts questions sent to servers.
    func addQueries(_ count: UInt64) {
        state.withLock { $0.statistics.queries += count }
    }

    /// Hands out one family's addresses; the lookup continues.
    func publish(part: ResolvedAnswer, of name: DomainName) {
        let waiters = state.withLock { state -> [Waiter] in
            guard let waiters = state.pending[name]?.waiters else { return [] }
            var kept: [Waiter] = []
            for waiter in waiters where waiter.later != nil {
                kept.append(Waiter(completion: nil, later: waiter.later))
            }
            state.pending[name]?.waiters = kept
            state.pending[name]?.part = part
            state.waiting -= waiters.count - kept.count
            return waiters
        }
        for waiter in waiters { waiter.completion?(.resolved(part)) }
    }

    /// Ends a lookup: the answer is cached until it expires, and handed out.
    func finish(_ name: DomainName, _ result: ResolveResult, expiresAt: Int64, now: Int64) {
        let pending = state.withLock { state -> Pending? in
            guard let pending = state.pending.removeValue(forKey: name) else { return nil }
            state.waiting -= pending.waiters.count
            state.shares.end(
                pending.ticket, timedOut: result == .failed(.timeout), nowMilliseconds: now)
            let entry = AnswerCache.Entry(result: result, expiresAtMilliseconds: expiresAt)
            state.cache.insert(
                name, entry, client: pending.ticket.client, nowMilliseconds: now)
            state.statistics.add(latencyMilliseconds: now - pending.startedAtMilliseconds)
            switch result {
            case .resolved(let answer):
                state.statistics.resolved += 1
                if answer.source == .hosts { state.statistics.hostsAnswers += 1 }
            case .failed(let failure):
                state.statistics.add(failure: failure)
            }
            return pending
        }
        guard let pending else { return }
        for waiter in pending.waiters {
            if let completion = waiter.completion {
                completion(result)
            } else if let later = waiter.later, case .resolved(let answer) = result {
                // Even without further addresses: it means that no more will arrive.
                later(answer)
            }
        }
    }

    /// Completes all waiting lookups with `cancelled`; called once, after ``close()``.
    func cancelAll() {
        let waiters = state.withLock { state -> [Waiter] in
            let waiters = state.pending.values.flatMap(\.waiters)
            for _ in state.pending { state.statistics.add(failure: .cancelled) }
            state.pending = [:]
            state.shares.removeAll()
            state.waiting = 0
            return waiters
        }
        for waiter in waiters { waiter.completion?(.failed(.cancelled)) }
    }
}
