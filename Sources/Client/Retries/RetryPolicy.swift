import HTTPCore

/// Whether a client makes a request again after it has failed, and when.
///
/// A value that decides; it neither waits nor counts. Delays grow exponentially, with full jitter:
/// each is a random part of its bound, so that many clients do not come back at once.
public struct RetryPolicy: Hashable, Sendable {
    /// How often a request is made at most, the first time among them.
    public var maximumAttempts: Int
    /// The bound of the first delay; each one's is twice that of the one before.
    public var firstDelayMilliseconds: Int64
    /// The bound of all delays.
    public var maximumDelayMilliseconds: Int64
    /// What a server may ask for by Retry-After. Where it asks for more, nothing is made again:
    /// whoever waits is told so rather.
    public var maximumRetryAfterMilliseconds: Int64
    /// From the first attempt's start to the last one's.
    public var maximumElapsedMilliseconds: Int64
    /// Final statuses after which a request is made again.
    public var statuses: Set<Int>

    /// Three attempts within two minutes, half a second between the first two.
    public init(
        maximumAttempts: Int = 3, firstDelayMilliseconds: Int64 = 500,
        maximumDelayMilliseconds: Int64 = 30_000, maximumRetryAfterMilliseconds: Int64 = 60_000,
        maximumElapsedMilliseconds: Int64 = 120_000,
        statuses: Set<Int> = [408, 421, 425, 429, 500, 502, 503, 504]
    ) {
        precondition(maximumAttempts > 0, "a request is made once at least")
        precondition(
            firstDelayMilliseconds >= 0 && maximumDelayMilliseconds >= 0
                && maximumRetryAfterMilliseconds >= 0 && maximumElapsedMilliseconds >= 0,
            "times do not go back")
        self.maximumAttempts = maximumAttempts
        self.firstDelayMilliseconds = firstDelayMilliseconds
        self.maximumDelayMilliseconds = maximumDelayMilliseconds
        self.maximumRetryAfterMilliseconds = maximumRetryAfterMilliseconds
        self.maximumElapsedMilliseconds = maximumElapsedMilliseconds
        self.statuses = statuses
    }

    /// Makes every request once.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// How an attempt failed.
    public enum Failure: Hashable, Sendable {
        /// No connection could be made: nothing of the request was sent.
        case notConnected
        /// The connection ended, or took too long, before there was a response.
        case noResponse
        /// It did so after a part of the response had been handed on.
        case responseCutOff
        /// A final response.
        ///
        /// - Parameter retryAfter: the value of that field.
        case status(Int, retryAfter: String?)
    }

    /// What was tried.
    public struct Attempt: Hashable, Sendable {
        /// As the request line has it.
        public var method: String
        /// 1 for the first.
        public var number: Int
        /// Since the first one's start.
        public var elapsedMilliseconds: Int64
        /// Whether the content can be sent again. True where there is none.
        public var canRepeatContent: Bool
        /// Whether the caller knows that two of the same request do what one does, as with an
        /// Idempotency-Key.
        public var isIdempotent: Bool

        /// An attempt; by its method alone it is known whether it may be repeated
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

    /// What to do.
    public enum Decision: Hashable, Sendable {
        /// Make it again, after this wait.
        case retry(afterMilliseconds: Int64)
        /// Hand the failure on.
        case giveUp(Reason)
    }

    /// Why a request is not made again.
    public enum Reason: Hashable, Sendable {
        /// It was made as often as it may be.
        case attemptsUsedUp
        /// The next attempt would begin too late.
        case timeUsedUp
        /// The server may have done what it was asked for, and doing it twice is not the same.
        case notIdempotent
        /// The content cannot be sent again.
        case contentGone
        /// The caller has a part of the response.
        case responseBegun
        /// The status is none of ``RetryPolicy/statuses``.
        case finalStatus
        /// The server asks for a longer wait than is allowed, in milliseconds.
        case retryAfterTooLong(Int64)
    }

    /// Whether one request does what two do (RFC 9110, section 9.2.2). Letter case counts.
    public static func isIdempotent(method: String) -> Bool {
        [
            "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PROPFIND", "QUERY", "REPORT",
            "SEARCH",
        ].contains(method)
    }

    /// Decides after a failed attempt.
    ///
    /// - Parameters:
    ///   - now: seconds since 1970, for a Retry-After that is a date.
    ///   - generator: of the jitter.
    public func decide(
        after failure: Failure, of attempt: Attempt, now: Int64,
        using generator: inout some RandomNumberGenerator
    ) -> Decision {
        if let reason = refusal(failure, attempt) { return .giveUp(reason) }
        guard attempt.number < maximumAttempts else { return .giveUp(.attemptsUsedUp) }
        var delay = Int64.random(in: 0...bound(ofDelay: attempt.number), using: &generator)
        if case .status(_, let field?) = failure,
            let asked = Self.milliseconds(retryAfter: field, now: now)
        {
            guard asked <= maximumRetryAfterMilliseconds else {
                return .giveUp(.retryAfterTooLong(asked))
            }
            // Not before, and not all at that time.
            delay = asked + Int64.random(in: 0...firstDelayMilliseconds, using: &generator)
        } else if case .status(421, _) = failure {
            // Another connection will do at once (RFC 9110, section 15.5.20).
            delay = 0
        }
        let (end, isTooLarge) = attempt.elapsedMilliseconds.addingReportingOverflow(delay)
        guard !isTooLarge, end <= maximumElapsedMilliseconds else { return .giveUp(.timeUsedUp) }
        return .retry(afterMilliseconds: delay)
    }

    private func refusal(_ failure: Failure, _ attempt: Attempt) -> Reason? {
        switch failure {
        case .notConnected: return nil
        case .responseCutOff: return .responseBegun
        case .status(let status, _) where !statuses.contains(status): return .finalStatus
        // The request was not done (RFC 9110, sections 15.5.9 and 15.5.20; RFC 8470).
        case .status(408, _), .status(421, _), .status(425, _): break
        case .noResponse, .status:
            guard attempt.isIdempotent else { return .notIdempotent }
        }
        return attempt.canRepeatContent ? nil : .contentGone
    }

    /// The bound of the delay after so many attempts.
    func bound(ofDelay attempts: Int) -> Int64 {
        let doublings = min(max(attempts - 1, 0), 62)
        let (bound, isTooLarge) = firstDelayMilliseconds.multipliedReportingOverflow(
            by: 1 << Int64(doublings))
        return isTooLarge ? maximumDelayMilliseconds : min(bound, maximumDelayMilliseconds)
    }

    /// What a Retry-After field asks for (RFC 9110, section 10.2.3): seconds, or a date, whose
    /// seconds from now are 0 once it is past. Nil: it is neither.
    ///
    /// - Parameter now: seconds since 1970.
    public static func milliseconds(retryAfter field: String, now: Int64) -> Int64? {
        RetryAfter.milliseconds(field.utf8, now: now)
    }
}
