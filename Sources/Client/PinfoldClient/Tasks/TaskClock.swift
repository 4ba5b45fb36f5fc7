/// How long a task has been under way; the time in which it is suspended does not count. Times are
/// milliseconds of the monotonic clock.
struct TaskClock: Sendable {
    /// Nil: it has not begun.
    private var begun: Int64?
    /// Since when it is suspended; nil: it is not.
    private var suspended: Int64?
    private var suspendedBefore: Int64 = 0

    mutating func begin(at now: Int64) { begun = begun ?? now }

    mutating func suspend(at now: Int64) { suspended = suspended ?? now }

    mutating func resume(at now: Int64) {
        guard let since = suspended.take(), let begun else { return }
        suspendedBefore += now - max(since, begun)
    }

    func elapsed(at now: Int64) -> Int64 {
        guard let begun else { return 0 }
        return max(begun, suspended ?? now) - begun - suspendedBefore
    }
}
