import Clocks
import HTTPTypes
import Locking
import PinfoldEngine

/// What to do after an attempt: a value, decided without side effects.
enum NextStep: Sendable {
    /// The task gets the response.
    case finish
    /// The response is a redirect. The hook of the redirect rule is called before it is followed.
    case redirect(RedirectRule.Target)
    /// The response requires credentials. If there are none, the task gets the response.
    case authenticate(Challenger)
    /// The same request is sent again after a delay.
    case retry(after: Duration)
    /// The same request is sent again immediately, on a new connection.
    case resend
    /// The same request is sent again without waiting to be asked for the content.
    case resendUnasked
    case fail(ClientError)

    /// The sender of a challenge.
    enum Challenger: Sendable, Hashable {
        /// The server, by 401 with WWW-Authenticate.
        case server
        /// A proxy, by 407 with Proxy-Authenticate: in response to the request, or to CONNECT.
        case proxy(forTunnel: Bool)
    }
}

/// How often a task has already continued, by kind.
struct AttemptCounts: Sendable, Equatable {
    /// The number of redirects followed.
    var redirects = 0
    /// The number of requests sent again after a failure.
    var retries = 0
    /// The number of requests that interceptors have had sent again.
    var interceptorRetries = 0
    /// The number of challenges answered since the last redirect.
    var challenges = 0
    /// The number of requests sent again since then because their connection was closed without a
    /// response.
    var resends = 0
    /// The number of requests sent again because a server refused to be waited for.
    var refusedExpectations = 0
}

/// A single request of a task that sends several.
struct TaskPart: Sendable {
    let request: HTTPRequest
    /// The number of requests that the task has already sent again.
    var retries = 0
    var cause = TaskMetrics.Cause.task
    /// The metrics of its attempts, if it has failed.
    let failedMetrics = Locked<TaskMetrics?>(nil)
}

/// What a task's next step depends on, besides the result of the attempt.
struct AttemptRules: Sendable {
    /// The maximum number of challenges answered for a URL: one or two each of a proxy and of the
    /// server, and one each for credentials that have expired.
    static let maximumChallenges = 6

    var redirects: RedirectRule
    var retries: RetryPolicy
    /// The time left for the task.
    var remainingTime: Duration
    /// The time since the beginning of the task.
    var elapsed: Duration
    /// The current time in seconds since 1970.
    var now: Int64
    /// Whether a request whose reused connection was closed is sent again once, whatever its
    /// method.
    var resendsUnansweredRequests = false
    /// Whether content waits for the server to ask for it.
    var expectsContinue = false

    /// Decides what to do after an attempt.
    ///
    /// - Parameters:
    ///   - request: The request of the attempt.
    ///   - unadapted: The request without the fields that interceptors have added, which a redirect
    ///     does not carry along; `nil` if there are none.
    ///   - hasRepeatableContent: Whether its content, if any, can be sent again.
    func step(
        after outcome: Result<HTTPResponse, ClientError>, of request: HTTPRequest,
        unadapted: HTTPRequest? = nil, hasRepeatableContent: Bool,
        _ counts: AttemptCounts, using generator: inout some RandomNumberGenerator
    ) -> NextStep {
        switch outcome {
        case .failure(let error):
            if hasRepeatableContent, counts.challenges < Self.maximumChallenges,
                let answer = error.proxyResponse, Self.isProxyChallenge(answer)
            {
                return .authenticate(.proxy(forTunnel: true))
            }
            if resendsUnansweredRequests, error.wasLeftUnanswered, hasRepeatableContent,
                counts.resends == 0
            {
                return .resend
            }
            guard let failure = error.retryFailure,
                let wait = wait(
                    after: failure, request, hasRepeatableContent, counts, using: &generator)
            else { return .fail(error) }
            return .retry(after: wait)
        case .success(let response) where Self.isFinal(response.status.code, retries):
            return .finish
        case .success(let response):
            // RFC 9110 section 10.1.1: the chain might have a server that is too old for it.
            if response.status.code == 417, expectsContinue, hasRepeatableContent,
                counts.refusedExpectations == 0
            {
                return .resendUnasked
            }
            if hasRepeatableContent, counts.challenges < Self.maximumChallenges,
                let challenger = Self.challenger(response)
            {
                return .authenticate(challenger)
            }
            if let step = redirect(to: response, unadapted ?? request, counts) {
                return step
            }
            let failure = RetryPolicy.FailureReason.status(
                response.status.code,
                // If there are two different ones, the policy's own delay is used.
                retryAfter: try? response.headerFields.single(.retryAfter))
            let wait = wait(
                after: failure, request, hasRepeatableContent, counts, using: &generator)
            return wait.map { .retry(after: $0) } ?? .finish
        }
    }

    /// Whether a status is final: it asks for neither credentials nor another location nor a retry.
    static func isFinal(_ status: Int, _ retries: RetryPolicy) -> Bool {
        200..<300 ~= status && !retries.statusCodes.contains(status)
    }

    private static func challenger(_ response: HTTPResponse) -> NextStep.Challenger? {
        switch response.status.code {
        case 401 where response.headerFields.contains(.wwwAuthenticate): .server
        case 407 where isProxyChallenge(response): .proxy(forTunnel: false)
        default: nil
        }
    }

    private static func isProxyChallenge(_ response: HTTPResponse) -> Bool {
        response.status.code == 407 && response.headerFields.contains(.proxyAuthenticate)
    }

    private func redirect(
        to response: HTTPResponse, _ request: HTTPRequest, _ counts: AttemptCounts
    ) -> NextStep? {
        guard redirects.followsAny else { return nil }
        let target: RedirectRule.Target?
        do throws(ConflictingFieldLinesError) {
            target = try RedirectRule.target(of: response, after: request)
        } catch {
            return .fail(
                ClientError(
                    .badResponse, "the redirect cannot be followed: it has \(error)", of: request,
                    underlying: error))
        }
        guard let target else { return nil }
        guard counts.redirects < redirects.maximum else {
            return .fail(
                ClientError(
                    .tooManyRedirects, "more than \(redirects.maximum) redirects", of: request))
        }
        return .redirect(target)
    }

    /// Returns the delay, or `nil` if the request is not sent again.
    private func wait(
        after failure: RetryPolicy.FailureReason, _ request: HTTPRequest,
        _ hasRepeatableContent: Bool,
        _ counts: AttemptCounts, using generator: inout some RandomNumberGenerator
    ) -> Duration? {
        // Even if nothing was sent, reading a source may have begun.
        guard hasRepeatableContent else { return nil }
        let hasKey = HTTPField.Name.idempotencyKey.map { request.headerFields.contains($0) }
        let attempt = RetryPolicy.Attempt(
            method: request.method.rawValue, number: counts.retries + 1,
            elapsedMilliseconds: elapsed.wholeMilliseconds,
            isIdempotent: hasKey ?? false ? true : nil)
        let decision = retries.decide(after: failure, of: attempt, now: now, using: &generator)
        guard case .retry(let milliseconds) = decision, .milliseconds(milliseconds) < remainingTime
        else { return nil }
        return .milliseconds(milliseconds)
    }
}

extension AttemptRules {
    /// Creates the rules for a request of a session.
    init(_ session: SessionConfiguration, _ options: RequestOptions, elapsed: Duration) {
        self.init(
            redirects: options.redirects ?? session.redirects,
            retries: options.retries ?? session.retries,
            remainingTime: session.resourceTimeout - elapsed, elapsed: elapsed,
            now: Clock.wallSeconds(),
            resendsUnansweredRequests: options.resendsUnansweredRequests
                ?? session.resendsUnansweredRequests,
            expectsContinue: session.continueTimeout(options) != nil)
    }
}

extension ClientError {
    /// The failure in the terms of a retry policy, or `nil` if the next attempt would fail in the
    /// same way.
    var retryFailure: RetryPolicy.FailureReason? {
        let failure = failureByReason
        // The exchange's own second attempt got no connection, but its first one was sent.
        return wasSent && failure == .notConnected ? .noResponse : failure
    }

    private var failureByReason: RetryPolicy.FailureReason? {
        switch reason {
        case .cannotConnect, .nameNotResolved: .notConnected
        case .connectionLost: .noResponse
        case .timedOut:
            switch underlying as? ExchangeError {
            case nil where underlying is QueueTimeoutError: .notConnected
            case .connectTimeout, .tlsTimeout, .proxy: .notConnected
            default: .noResponse
            }
        case .proxyFailed:
            switch underlying as? ExchangeError {
            case .proxy(.unreachable), .proxy(.closed): .notConnected
            default: nil
            }
        default: nil
        }
    }
}

extension HTTPField.Name {
    /// From a draft of the IETF's HTTPAPI group: two requests with the same key have the effect of
    /// one.
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
