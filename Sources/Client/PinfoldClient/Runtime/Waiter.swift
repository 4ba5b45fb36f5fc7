/// A task that waits until the loop, or another task, resumes it: once.
///
/// In a debug build the library says where one is resumed twice or forgotten, at the price of an
/// allocation each.
#if DEBUG
    typealias Waiter = CheckedContinuation<Void, Never>
#else
    typealias Waiter = UnsafeContinuation<Void, Never>
#endif

extension Waiter {
    /// Waits until the waiter that `body` is given is resumed.
    @inline(__always)
    static func wait(_ body: (Waiter) -> Void) async {
        #if DEBUG
            await withCheckedContinuation(body)
        #else
            await withUnsafeContinuation(body)
        #endif
    }
}
