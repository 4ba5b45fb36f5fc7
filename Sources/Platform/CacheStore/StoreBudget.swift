import Locking
import Synchronization

/// Bytes of responses that are on their way, up to a limit.
final class StoreBudget: Sendable {
    private let used = Atomic<Int>(0)
    let limit: Int
    /// Callers waiting for most of the budget to be free.
    private let waiters = Locked<[@Sendable () -> Void]>([])
    private let hasWaiters = Atomic<Bool>(false)

    init(limit: Int) { self.limit = limit }

    var bytes: Int { used.load(ordering: .relaxed) }

    /// Whether more than half of it is in use: the disk is slower than the arrivals.
    var isCongested: Bool { bytes > limit / 2 }

    /// Takes `count` bytes; `false` if there are not enough.
    func reserve(_ count: Int) -> Bool { reserve(count, within: limit) }

    /// The same, if at most `bound` are in use afterwards.
    func reserve(_ count: Int, within bound: Int) -> Bool {
        let after = used.wrappingAdd(count, ordering: .relaxed).newValue
        if after <= bound { return true }
        used.wrappingSubtract(count, ordering: .relaxed)
        return false
    }

    /// Whether that many could be taken now.
    func hasRoom(for count: Int) -> Bool { bytes + count <= limit }

    /// Takes `count` bytes even if there are not enough.
    func overdraw(_ count: Int) { used.wrappingAdd(count, ordering: .relaxed) }

    func release(_ count: Int) {
        guard count > 0 else { return }
        used.wrappingSubtract(count, ordering: .relaxed)
        if hasWaiters.load(ordering: .acquiring) { wake() }
    }

    /// Calls `completion` once, when at least three quarters of the budget are free; at once if
    /// they already are. That is later than the end of `isCongested`, so that a waiting exchange
    /// does not stop again at once.
    func whenMostlyFree(_ completion: @escaping @Sendable () -> Void) {
        waiters.withLock { $0.append(completion) }
        hasWaiters.store(true, ordering: .sequentiallyConsistent)
        wake()
    }

    private func wake() {
        guard bytes <= limit / 4 else { return }
        let ready = waiters.withLock { waiters in
            let ready = waiters
            waiters = []
            hasWaiters.store(false, ordering: .releasing)
            return ready
        }
        for completion in ready { completion() }
    }
}
