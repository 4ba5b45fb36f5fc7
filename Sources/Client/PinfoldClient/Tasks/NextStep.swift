import Clocks
import HTTPTypes
import Locking
import PinfoldEngine
import Retries
import Serialization

/// What a runner does after an attempt: a value, decided without effects.
enum NextStep: Sendable {
    /// The response is the task's.
    case finish
    /// The response names another place. Its rule's hook is asked before it is followed.
    case redirect(RedirectRule.Target)
    /// The response asks for credentials; it is the task's if there are none.
    case authenticate(Challenger)
    /// The same request is sent again after a wait.
    case retry(after: Duration)
    /// The same request is sent again at once, on a new connection.
    case resend
    case fail(ClientError)

    /// Whose credentials a response asks for.
    enum Challenger: Sendable, Hashable {
        /// 401, with WWW-Authenticate.
        case server
        /// 407, with Proxy-Authenticate: to a request, or where a tunnel was asked for.
        case proxy(forTunnel: Bool)
    }
}

/// How often a task has gone on already, by kind.
struct AttemptCounts: Sendable, Equatable {
    /// Redirects followed.
    var redirects = 0
    /// Requests sent again after a failure.
    var retries = 0
    /// Answers to challenges since the last redirect.
    var challenges = 0
    /// Requests sent again since then because their connection was closed without an answer.
    var resends = 0
}

/// One request of a task that sends several.
struct TaskPart: Sendable {
    let request: HTTPRequest
    /// Requests that the task has sent again by now.
    var retries = 0
    var cause = TaskMetrics.Cause.task
    /// What its attempts took, where it has failed.
    let failedMetrics = Locked<TaskMetrics?>(nil)
}

/// What a task's next steps depend on, besides what came of the attempt.
struct AttemptRules: Sendable {
    /// Challenges that are answered for one URL: one or two of a proxy and of the server, one each
    /// for credentials that have expired.
    static let maximumChallenges = 6

    var redirects: RedirectRule
    var retries: RetryPolicy
    /// How long the task may still take.
    var remainingTime: Duration
    /// Since the task began.
    var elapsed: Duration
    /// Seconds since 1970.
    var now: Int64
    /// What a kept connection was closed on is sent again once, whatever its method.
    var resendsUnanswered = false

    /// What follows on an attempt.
    ///
    /// - Parameters:
    ///   - request: What was asked for.
    ///   - hasRepeatableContent: Its content, if any, can be sent again.
    func step(
        after outcome: Result<HTTPResponse, ClientError>, of request: HTTPRequest,
        hasRepeatableContent: Bool,
        _ counts: AttemptCounts, using generator: inout some RandomNumberGenerator
    ) -> NextStep {
        switch outcome {
        case .failure(let error):
            if hasRepeatableContent, counts.challenges < Self.maximumChallenges,
                let answer = error.proxyResponse, Self.isProxyChallenge(answer)
            {
                return .authenticate(.proxy(forTunnel: true))
            }
            if resendsUnanswered, error.wasLeftUnanswered, hasRepeatableContent,
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
            if hasRepeatableContent, counts.challenges < Self.maximumChallenges,
                let challenger = Self.challenger(response)
            {
                return .authenticate(challenger)
            }
            if let step = redirect(to: response, request, counts) {
                return step
            }
            let failure = RetryPolicy.Failure.status(
                response.status.code,
                // Two that differ ask for nothing: the policy's own wait stands.
                retryAfter: try? response.headerFields.single(.retryAfter))
            let wait = wait(
                after: failure, request, hasRepeatableContent, counts, using: &generator)
            return wait.map { .retry(after: $0) } ?? .finish
        }
    }

    /// Whether a status asks for nothing: neither credentials nor another place nor a retry.
    static func isFinal(_ status: Int, _ retries: RetryPolicy) -> Bool {
        200..<300 ~= status && !retries.statuses.contains(status)
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
        do throws(ConflictingFieldLines) {
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

    /// Nil: it is not sent again.
    private func wait(
        after failure: RetryPolicy.Failure, _ request: HTTPRequest, _ hasRepeatableContent: Bool,
        _ counts: AttemptCounts, using generator: inout some RandomNumberGenerator
    ) -> Duration? {
        // Even where nothing was sent, a source may have been begun.
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
    /// Those of a request of a session.
    init(_ session: SessionConfiguration, _ options: RequestOptions, elapsed: Duration) {
        self.init(
            redirects: options.redirects ?? session.redirects,
            retries: options.retries ?? session.retries,
            remainingTime: session.resourceTimeout - elapsed, elapsed: elapsed,
            now: Clock.coarseWallSeconds(),
            resendsUnanswered: options.resendsUnanswered ?? session.resendsUnanswered)
    }
}

extension ClientError {
    /// How an attempt has failed, for a retry policy; nil: the next one would fail as this one.
    var retryFailure: RetryPolicy.Failure? {
        let failure = failureByReason
        // The exchange's own second attempt had no connection; its first one was sent.
        return wasSent && failure == .notConnected ? .noResponse : failure
    }

    private var failureByReason: RetryPolicy.Failure? {
        switch reason {
        case .cannotConnect, .nameNotResolved: .notConnected
        case .connectionLost: .noResponse
        case .timedOut:
            switch underlying as? ExchangeFault {
            case nil where underlying is QueueTimeout: .notConnected
            case .connectTimeout, .tlsTimeout, .proxy: .notConnected
            default: .noResponse
            }
        case .proxyFailed:
            switch underlying as? ExchangeFault {
            case .proxy(.unreachable), .proxy(.closed): .notConnected
            default: nil
            }
        default: nil
        }
    }
}

extension HTTPField.Name {
    /// Of a draft of the IETF's HTTPAPI group: two requests with one key do what one does.
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
