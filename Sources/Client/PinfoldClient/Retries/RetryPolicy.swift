import HTTPCore

/// Decides whether and when a client repeats a failed request.
///
/// It is a value that only decides; it neither waits nor counts. Delays grow exponentially with
/// full jitter: each delay is a random fraction of its upper bound, so that many clients do not
/// return at the same time.
public struct RetryPolicy: Hashable, Sendable {
    /// The maximum number of attempts, including the first one.
    public var maximumAttempts: Int
    /// The upper bound of the first delay, in milliseconds. The bound doubles with each further
    /// delay.
    public var firstDelayMilliseconds: Int64
    /// The upper bound of all delays, in milliseconds.
    public var maximumDelayMilliseconds: Int64
    /// The longest delay that a server may request by Retry-After, in milliseconds. If it requests
    /// a longer one, the request is not repeated and the caller gets the response instead.
    public var maximumRetryAfterMilliseconds: Int64
    /// The maximum time from the start of the first attempt to the start of the last one, in
    /// milliseconds.
    public var maximumElapsedMilliseconds: Int64
    /// The final status codes after which a request is repeated.
    public var statusCodes: Set<Int>

    /// Creates a policy. By default, it makes three attempts within two minutes, with up to half a
    /// second between the first two.
    public init(
        maximumAttempts: Int = 3, firstDelayMilliseconds: Int64 = 500,
        maximumDelayMilliseconds: Int64 = 30_000, maximumRetryAfterMilliseconds: Int64 = 60_000,
        maximumElapsedMilliseconds: Int64 = 120_000,
        statusCodes: Set<Int> = [408, 421, 425, 429, 500, 502, 503, 504]
    ) {
        precondition(maximumAttempts > 0, "at least one attempt is required")
        precondition(
            firstDelayMilliseconds >= 0 && maximumDelayMilliseconds >= 0
                && maximumRetryAfterMilliseconds >= 0 && maximumElapsedMilliseconds >= 0,
            "times must not be negative")
        self.maximumAttempts = maximumAttempts
        self.firstDelayMilliseconds = firstDelayMilliseconds
        self.maximumDelayMilliseconds = maximumDelayMilliseconds
        self.maximumRetryAfterMilliseconds = maximumRetryAfterMilliseconds
        self.maximumElapsedMilliseconds = maximumElapsedMilliseconds
        self.statusCodes = statusCodes
    }

    /// A policy that makes every request once.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// How an attempt failed.
    public enum FailureReason: Hashable, Sendable {
        /// No connection could be established, so nothing of the request was sent.
        case notConnected
        /// The connection was closed or timed out before a response arrived.
        case noResponse
        /// The connection was closed or timed out after part of the response had been delivered.
        case responseCutOff
        /// A final response.
        ///
        /// - Parameter retryAfter: The value of its Retry-After field.
        case status(Int, retryAfter: String?)
    }

    /// A failed attempt.
    public struct Attempt: Hashable, Sendable {
        /// The method as it appears in the request line.
        public var method: String
        /// The attempt's number, from 1.
        public var number: Int
        /// The time since the start of the first attempt, in milliseconds.
        public var elapsedMilliseconds: Int64
        /// Whether the content can be sent again. `true` if there is none.
        public var canRepeatContent: Bool
        /// Whether the caller knows that repeating the request has no further effect, for example
        /// because it has an Idempotency-Key.
        public var isIdempotent: Bool

        /// Creates an attempt. Whether it is idempotent follows from its method by default
        /// (``RetryPolicy/isIdempotent(method:)``).
        public init(
            method: String, number: Int = 1, elapsedMilliseconds: Int64 = 0,
            canRepeatContent: Bool = true, isIdempotent: Bool? = nil
        ) {
            (self.method, self.number) = (method, number)
            self.elapsedMilliseconds = elapsedMilliseconds
            self.canRepeatContent = canRepeatContent
            self.isIdempotent = isIdempotent ?? RetryPolicy.isIdempotent(method: method)
        }
    }

    /// What to do after a failed attempt.
    public enum Decision: Hashable, Sendable {
        /// Repeat the request after this delay.
        case retry(afterMilliseconds: Int64)
        /// Report the failure to the caller.
        case giveUp(Reason)
    }

    /// The reason why a request is not repeated.
    public enum Reason: Hashable, Sendable {
        /// The maximum number of attempts has been made.
        case attemptsExhausted
        /// The next attempt would begin too late.
        case timeExhausted
        /// The request may already have had its effect on the server, and repeating it would not be
        /// idempotent.
        case notIdempotent
        /// The content cannot be sent again.
        case contentNotRepeatable
        /// Part of the response has already been delivered to the caller.
        case responseStarted
        /// The status is not one of ``RetryPolicy/statusCodes``.
        case statusNotListed
        /// The server requests a longer delay than is allowed; in milliseconds.
        case retryAfterTooLong(Int64)
    }

    /// Whether a method is idempotent (RFC 9110, section 9.2.2). The letter case matters.
    public static func isIdempotent(method: String) -> Bool {
        [
            "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "QUERY", "REPORT",
            "SEARCH",
        ].contains(method)
    }

    /// Decides what to do after a failed attempt.
    ///
    /// - Parameters:
    ///   - now: The current time in seconds since 1970, for a Retry-After field with a date.
    ///   - generator: The source of randomness for the jitter.
    public func decide(
        after failure: FailureReason, of attempt: Attempt, now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> Decision {
        if let reason = refusal(failure, attempt) { return .giveUp(reason) }
        guard attempt.number < maximumAttempts else { return .giveUp(.attemptsExhausted) }
        var delay = Int64.random(in: 0...bound(ofDelay: attempt.number), using: &generator)
        if case .status(_, let field?) = failure,
            let asked = Self.milliseconds(retryAfter: field, now: now)
        {
            guard asked <= maximumRetryAfterMilliseconds else {
                return .giveUp(.retryAfterTooLong(asked))
            }
            // Not before that time, and not all clients at that very time.
            delay = asked + Int64.random(in: 0...firstDelayMilliseconds, using: &generator)
        } else if case .status(421, _) = failure {
            // Another connection can be tried immediately (RFC 9110, section 15.5.20).
            delay = 0
        }
        let (end, isTooLarge) = attempt.elapsedMilliseconds.addingReportingOverflow(delay)
        guard !isTooLarge, end <= maximumElapsedMilliseconds else { return .giveUp(.timeExhausted) }
        return .retry(afterMilliseconds: delay)
    }

    private func refusal(_ failure: FailureReason, _ attempt: Attempt) -> Reason? {
        switch failure {
        case .notConnected: return nil
        case .responseCutOff: return .responseStarted
        case .status(let status, _) where !statusCodes.contains(status): return .statusNotListed
        // The request was not processed (RFC 9110, sections 15.5.9 and 15.5.20; RFC 8470).
        case .status(408, _), .status(421, _), .status(425, _): break
        case .noResponse, .status:
            guard attempt.isIdempotent else { return .notIdempotent }
        }
        return attempt.canRepeatContent ? nil : .contentNotRepeatable
    }

    /// The upper bound of the delay after a number of attempts.
    func bound(ofDelay attempts: Int) -> Int64 {
        let doublings = min(max(attempts - 1, 0), 62)
        let (bound, isTooLarge) = firstDelayMilliseconds.multipliedReportingOverflow(
            by: 1 << Int64(doublings))
        return isTooLarge ? maximumDelayMilliseconds : min(bound, maximumDelayMilliseconds)
    }

    /// The delay in milliseconds that a Retry-After field requests (RFC 9110, section 10.2.3). The
    /// field is either a number of seconds or a date; a date in the past requests 0. Returns `nil`
    /// if it is neither.
    ///
    /// - Parameter now: The current time in seconds since 1970.
    public static func milliseconds(retryAfter field: String, now: Int64) -> Int64? {
        RetryAfter.milliseconds(field.utf8, now: now)
    }
}
