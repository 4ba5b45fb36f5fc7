import Authentication

/// Checks passwords, each of which takes long, on other threads.
package protocol PasswordChecking: Sendable {
    /// Has a password checked.
    /// - Parameter completion: called with the result, on another thread.
    func submit(
        _ check: PasswordCheck, completion: @escaping @Sendable (CheckOutcome) -> Void
    ) -> PasswordSubmission
}

/// What becomes of a password that is to be checked.
package enum PasswordSubmission: Sendable {
    /// The result will come. `isDelayed`: later, because of failures before it. `cancel`: the
    /// result is no longer wanted; it may still come.
    case accepted(isDelayed: Bool, cancel: @Sendable () -> Void)
    /// Too many wait: there is no result.
    case busy
    /// Failures before it: the next attempt begins after this many milliseconds.
    case refused(milliseconds: Int64)
}
