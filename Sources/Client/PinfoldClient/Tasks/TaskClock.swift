/// Measures how long a task has been running, without the time during which it is suspended. Times
/// are in milliseconds of the monotonic clock.
struct TaskClock: Sendable {
    /// When the task began, or `nil` if it has not begun.
    private var begun: Int64?
    /// When the task was suspended, or `nil` if it is not suspended.
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
