import HTTPTypes
import Locking

/// The authentication state of a task: the credentials that its requests carry, and what to do
/// about a 401 or 407.
///
/// The fields are added only to what is sent. The request with which a task continues after a
/// redirect or an error does not contain them.
final class TaskAuthentication: Sendable {
    /// The maximum number of decisions about the challenges of one response.
    private static let maximumDecisions = AuthenticationChallenge.Method.allCases.count * 4

    private struct State {
        /// The task's current request.
        var request: HTTPRequest
        /// The credentials sent with it to the server (`false`) and to the proxy (`true`).
        var sent: [Bool: Authenticator.Answer] = [:]
        /// The credentials that the next request carries instead.
        var next: [Bool: Authenticator.Answer] = [:]
        /// Has the credentials for this task alone.
        var own = Authenticator()
        /// The proxies to which these credentials apply, too.
        var ownProxies: Set<Authenticator.Origin> = []
        /// The challenges that the hook has declined to answer.
        var rejected: Set<Authenticator.Offer> = []
        var failures = 0
    }

    private let store: CredentialStore
    let task: TaskIdentifier
    private let hook: ChallengeHook?
    private let answersOrigin: (@Sendable (ProtectionSpace) -> Bool)?
    private let state: Locked<State>

    /// Creates the state of a task.
    ///
    /// - Parameters:
    ///   - answersOrigin: See ``SessionConfiguration/answersOrigin``.
    ///   - request: The task's first request.
    init(
        _ store: CredentialStore, hook: ChallengeHook?,
        answersOrigin: (@Sendable (ProtectionSpace) -> Bool)? = nil, task: TaskIdentifier,
        asking request: HTTPRequest
    ) {
        self.store = store
        self.hook = hook
        self.answersOrigin = answersOrigin
        self.task = task
        state = Locked(State(request: request))
    }

    /// The task's current request.
    private var request: HTTPRequest { state.withLock { $0.request } }

    /// Returns the request as it is sent. If the caller has set the field, it is left unchanged.
    /// The field for a proxy is added by the engine, which knows whether a tunnel is needed.
    func prepared(_ request: HTTPRequest, _ content: RequestContent?) -> HTTPRequest {
        var prepared = request
        let (next, isOwnPreemptive) = state.withLock { state in
            state.request = request
            if !state.sent.isEmpty || !state.next.isEmpty {
                state.sent = state.next.filter { $0.key }
            }
            return (
                state.next.isEmpty ? nil : takeNext(&state), state.own.authenticatesPreemptively
            )
        }
        // Most requests need no credentials.
        guard next != nil || isOwnPreemptive || store.authenticatesPreemptively,
            let source = request.origin.map({ ChallengeSource($0, isProxy: false) }),
            !request.headerFields.contains(source.field),
            let answer = answer(next, to: source.request(request, content))
        else { return prepared }
        prepared.headerFields.append(HTTPField(name: source.field, value: answer.bytes))
        state.withLock { $0.sent[false] = answer }
        return prepared
    }

    /// Returns the answer to a challenge for the request as it is now: since it was challenged, an
    /// interceptor may have changed its target, or its origin, which then gets no answer but its
    /// own. Without one, returns the credentials to send preemptively.
    private func answer(
        _ next: Authenticator.Answer?, to request: Authenticator.Request
    ) -> Authenticator.Answer? {
        (try? next?.remade(for: request)) ?? preemptiveAnswer(request)
    }

    private func takeNext(_ state: inout State) -> Authenticator.Answer? {
        defer { state.next = [:] }
        return state.next[false]
    }

    /// Whether this task has credentials for a proxy that differ from those of other tasks.
    func hasOwn(for proxy: ChallengeSource) -> Bool {
        state.withLock { $0.ownProxies.contains(proxy.origin) }
    }

    /// Returns the credentials to send preemptively. If none can be created, for example because a
    /// nonce has been used up, the request waits for a challenge.
    func preemptiveAnswer(_ request: Authenticator.Request) -> Authenticator.Answer? {
        let own = state.withLock { try? $0.own.authorization(for: request) }
        return own ?? (try? store.authorization(for: request)) ?? nil
    }

    /// Processes a response with Authentication-Info, which the next answer depends on.
    func received(_ response: HTTPResponse) {
        guard let source = request.origin.map({ ChallengeSource($0, isProxy: false) }),
            let info = source.info(of: response)
        else { return }
        let isOwn = state.withLock { state in
            guard let sent = state.sent[false],
                state.own.credentials(for: sent.space) == sent.credentials
            else { return false }
            state.own.take(info: info, from: source.origin)
            return true
        }
        if !isOwn { store.take(info: info, from: source.origin) }
    }
}

// MARK: - Challenges

extension TaskAuthentication {
    private enum Step {
        case answer(Authenticator.Answer)
        /// The credentials have changed: look at the same challenges again.
        case again
        /// The task gets the response with the challenges.
        case none
    }

    /// Returns the request that follows a response with challenges, or `nil` if the task gets that
    /// response.
    ///
    /// - Parameter proxy: The proxy that sent a 407, or `nil` if the server sent a 401.
    /// - Throws: ``ClientError`` if the hook cancels the task, or it is cancelled in the meantime;
    ///   if credentials cannot be sent in the required form; or if there are credentials for a
    ///   server whose challenges cannot be parsed.
    func answer(
        to response: HTTPResponse, _ content: RequestContent?, proxy: Proxy?
    ) async throws(ClientError) -> HTTPRequest? {
        let request = state.withLock { $0.request }
        guard
            let source = proxy?.challengeSource
                ?? request.origin.map({ ChallengeSource($0, isProxy: false) })
        else { return nil }
        // The field set by the caller was rejected, which the caller has to handle. A field for a
        // proxy that the caller has set is not sent at all: the engine treats it as hop-by-hop.
        guard source.isProxy || !request.headerFields.contains(source.field) else { return nil }
        let challenges: [HTTPChallenge]
        do throws(UnreadableChallengesError) {
            challenges = try source.challenges(of: response)
        } catch {
            // If the task could not have answered anyway, it gets the response. It also does if the
            // challenge came from a proxy: the 407 says what is missing.
            guard !source.isProxy, error.isAnswerable, hasCredentials(for: source) else {
                return nil
            }
            throw ClientError(
                .authenticationFailed,
                "credentials are required (\(response.status.code)), but \(error)", of: request,
                underlying: error.error)
        }
        if let proxy { useCredentials(of: proxy, source, challenges) }
        for _ in 0..<Self.maximumDecisions {
            switch try await step(challenges, source, response, request, content) {
            case .answer(let answer):
                state.withLock { $0.next[source.isProxy] = answer }
                return request
            case .again: continue
            case .none: return nil
            }
        }
        return nil
    }

    /// Whether there are credentials for any realm of an origin.
    private func hasCredentials(for source: ChallengeSource) -> Bool {
        answersOrigin?(source.space) == true || store.hasCredentials(for: source.origin)
            || state.withLock { $0.own.hasCredentials(for: source.origin) }
    }

    /// Uses the user and password of the proxy's URL for Digest, too, if the proxy requires it. For
    /// Basic they have already been sent.
    private func useCredentials(
        of proxy: Proxy, _ source: ChallengeSource,
        _ challenges: [HTTPChallenge]
    ) {
        guard let user = proxy.user, let password = proxy.password else { return }
        state.withLock { state in
            guard state.ownProxies.insert(source.origin).inserted else { return }
            for challenge in challenges where challenge.scheme == "digest" {
                state.own.set(
                    UserCredentials(user: user, password: password),
                    for: .init(origin: source.origin, realm: challenge.realm ?? ""))
            }
        }
    }

    private func step(
        _ challenges: [HTTPChallenge], _ source: ChallengeSource,
        _ response: HTTPResponse, _ request: HTTPRequest, _ content: RequestContent?
    ) async throws(ClientError) -> Step {
        let authenticated = source.request(request, content)
        let outcome: CredentialStore.Outcome
        do throws(AuthenticationError) {
            let (sent, rejected) = state.withLock { ($0.sent[source.isProxy], $0.rejected) }
            let own = try state.withLock { (state) throws(AuthenticationError) in
                var generator = SystemRandom()
                return try state.own.decide(
                    challenges, for: authenticated, sent: sent, excluding: rejected,
                    sends: !source.isProxy, using: &generator)
            }
            if case .answer(let answer) = own { return .answer(answer) }
            outcome = try await store.decide(
                challenges, for: authenticated, sent: sent, excluding: rejected,
                ask: hook.map { asking($0, response, request) })
        } catch {
            throw ClientError(
                .authenticationFailed, "credentials cannot be sent as required: \(error)",
                of: request, underlying: error)
        }
        switch outcome {
        case .decided(.answer(let answer)): return .answer(answer)
        case .decided(.rejected): return .again
        case .decided: return .none
        case .cancelled: throw ClientError.cancelled().about(request)
        case .asked(let prompt, let disposition):
            return try step(after: disposition, to: prompt, request)
        }
    }

    private func step(
        after disposition: ChallengeDisposition, to prompt: CredentialStore.Prompt,
        _ request: HTTPRequest
    ) throws(ClientError) -> Step {
        state.withLock { if prompt.refused != nil { $0.failures += 1 } }
        switch disposition {
        case .useCredential(let credential):
            guard credential.credentials != prompt.refused else { return .none }
            if credential.persistence == .none {
                let space = prompt.offer.space
                state.withLock { state in
                    state.own.set(credential.credentials, for: space)
                    if space.origin.isProxy { state.ownProxies.insert(space.origin) }
                }
            }
            return .again
        case .performDefaultHandling, .useCertificate: return .none
        case .cancel:
            throw ClientError(
                .cancelled, "the challenge for \(prompt.offer.space.realm) was cancelled",
                of: request)
        case .rejectProtectionSpace:
            state.withLock { _ = $0.rejected.insert(prompt.offer) }
            return .again
        }
    }

    private func asking(
        _ hook: @escaping ChallengeHook, _ response: HTTPResponse, _ request: HTTPRequest
    ) -> @Sendable (CredentialStore.Prompt) async -> ChallengeDisposition {
        let failures = state.withLock { $0.failures }
        return { prompt in
            await hook(
                AuthenticationChallenge(
                    protectionSpace: ProtectionSpace(prompt.offer.space),
                    method: .init(prompt.offer.scheme),
                    previousFailureCount: failures + (prompt.refused == nil ? 0 : 1),
                    rejectedCredential: prompt.refused.map { Credential($0) },
                    response: response, request: request, serverTrust: nil))
        }
    }
}

extension AuthenticationChallenge.Method {
    init(_ scheme: Authenticator.Scheme) {
        switch scheme {
        case .basic: self = .basic
        case .digest: self = .digest
        }
    }
}
