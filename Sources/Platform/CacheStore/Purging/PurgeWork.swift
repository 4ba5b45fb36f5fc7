import Clocks
import Locking
import Threads

/// Carries bans out in memory, in small steps: at first by whoever purges, and if that takes
/// longer, by a thread that ends with the work.
final class PurgeWork: Sendable {
    private struct State: Sendable {
        var thread: Thread?
        var isRunning = false
        var isClosed = false
    }

    private let state = Locked(State())
    /// One purge at a time is registered, and written down.
    let turns = Locked(())

    /// For how long whoever purges does it, in nanoseconds.
    private static let ownShare: Int64 = 2_000_000

    /// Sweeps memory for what is banned: now, or soon.
    func sweep(_ memory: MemoryTier, _ bans: BansInForce, _ onSwept: @escaping @Sendable () -> Void)
    {
        guard begin() else { return }
        let deadline = Clock.monotonicNanoseconds() + Self.ownShare
        var progress = Progress()
        while progress.step(memory, bans) {
            guard Clock.monotonicNanoseconds() < deadline else {
                return goOn(progress, memory, bans, onSwept)
            }
        }
        end(memory, bans, onSwept)
    }

    /// Takes the turn; `false` if somebody is at it, who will look again at the end.
    private func begin() -> Bool {
        state.withLock { state in
            guard !state.isRunning, !state.isClosed else { return false }
            state.isRunning = true
            return true
        }
    }

    private func end(
        _ memory: MemoryTier, _ bans: BansInForce, _ onSwept: @escaping @Sendable () -> Void
    ) {
        state.withLock { $0.isRunning = false }
        // What was purged meanwhile.
        if bans.memoryTarget != nil { return sweep(memory, bans, onSwept) }
        onSwept()
    }

    private func goOn(
        _ progress: Progress, _ memory: MemoryTier, _ bans: BansInForce,
        _ onSwept: @escaping @Sendable () -> Void
    ) {
        let thread = try? Thread(name: "cache-purges", niceness: 5) { [self] in
            run(progress, memory, bans, onSwept)
        }
        guard let thread else { return run(progress, memory, bans, onSwept) }
        let former = state.withLock { state in
            defer { state.thread = thread }
            return state.thread
        }
        // It has ended, or is about to.
        former?.detach()
    }

    private func run(
        _ progress: Progress, _ memory: MemoryTier, _ bans: BansInForce,
        _ onSwept: @escaping @Sendable () -> Void
    ) {
        var progress = progress
        repeat {
            while progress.step(memory, bans) {
                guard !state.withLock({ $0.isClosed }) else { return }
            }
            progress = Progress()
            let isDone = state.withLock { state in
                state.isRunning = bans.memoryTarget != nil
                return !state.isRunning
            }
            if isDone { return onSwept() }
        } while true
    }

    /// Ends the thread.
    func close() {
        let thread = state.withLock { state in
            state.isClosed = true
            defer { state.thread = nil }
            return state.thread
        }
        guard let thread else { return }
        if thread.isCurrent { thread.detach() } else { thread.join() }
    }

    /// One sweep through memory.
    private struct Progress {
        private var target: UInt64?
        private var place: MemoryTier.Place?

        /// Returns `false` when nothing is left to be done.
        mutating func step(_ memory: MemoryTier, _ bans: BansInForce) -> Bool {
            guard let from = place else {
                target = bans.memoryTarget
                guard target != nil else { return false }
                place = MemoryTier.Place()
                return true
            }
            place = memory.sweep(from: from)
            if place == nil, let target { bans.sweptMemory(through: target) }
            return true
        }
    }
}
