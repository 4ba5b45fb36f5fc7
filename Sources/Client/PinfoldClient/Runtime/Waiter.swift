/// A task that is suspended until the loop, or another task, resumes it exactly once.
///
/// In a debug build, the library reports if one is resumed twice or never, at the cost of an
/// allocation each.
#if DEBUG
    typealias Waiter = CheckedContinuation<Void, Never>
#else
    typealias Waiter = UnsafeContinuation<Void, Never>
#endif

extension Waiter {
    /// Suspends the task until the waiter passed to `body` is resumed.
    @inline(__always)
    static func wait(_ body: (Waiter) -> Void) async {
        #if DEBUG
            await withCheckedContinuation(body)
        #else
            await withUnsafeContinuation(body)
        #endif
    }
}
