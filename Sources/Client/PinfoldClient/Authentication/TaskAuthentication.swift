import HTTPAuthentication
import HTTPTypes
import Locking

/// The challenges of one task: what its requests take along, and what follows on a 401 or 407.
///
/// The fields go into what is sent only: the request that a task goes on with after a redirect or
/// an error has none of them.
final class TaskAuthentication: Sendable {
    /// Challenges of one response that are decided about, one after the other.
    private static let maximumDecisions = AuthenticationChallenge.Method.allCases.count * 4

    private struct State {
        /// What is asked for now, as the task has it.
        var request: HTTPRequest
        /// What it took along for the server, and for the proxy.
        var sent: [Bool: Authenticator.Answer] = [:]
        /// What the next request takes along instead.
        var next: [Bool: Authenticator.Answer] = [:]
        /// Has credentials that are for this task alone.
        var own = Authenticator()
        /// Proxies that these are for, too.
        var ownProxies: Set<Authenticator.Origin> = []
        /// What the hook does not want to answer.
        var rejected: Set<Authenticator.Offer> = []
        var failures = 0
    }

    private let store: CredentialStore
    let task: TaskIdentifier
    private let hook: ChallengeHook?
    private let answersOrigin: (@Sendable (ProtectionSpace) -> Bool)?
    private let state: Locked<State>

    /// - Parameters:
    ///   - answersOrigin: As ``SessionConfiguration/answersOrigin``.
    ///   - request: What is asked for now, as the task has it.
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

    /// What is asked for now, as the task has it.
    private var request: HTTPRequest { state.withLock { $0.request } }

    /// A request as it is sent. A field of the caller's own is left as it is. What is for a proxy
    /// the engine adds: it knows whether a tunnel has to be asked for.
    func prepared(_ request: HTTPRequest, _ content: RequestContent?) -> HTTPRequest {
        var prepared = request
        let (next, ownAnswers) = state.withLock { state in
            state.request = request
            if !state.sent.isEmpty || !state.next.isEmpty {
                state.sent = state.next.filter { $0.key }
            }
            return (state.next.isEmpty ? nil : takeNext(&state), state.own.answersUnasked)
        }
        // Most requests have nobody to tell anything.
        guard next != nil || ownAnswers || store.answersUnasked,
            let asker = request.origin.map({ Asker($0, isProxy: false) }),
            !request.headerFields.contains(asker.field),
            let answer = next ?? unasked(asker.question(request, content))
        else { return prepared }
        prepared.headerFields.append(HTTPField(name: asker.field, value: answer.bytes))
        state.withLock { $0.sent[false] = answer }
        return prepared
    }

    private func takeNext(_ state: inout State) -> Authenticator.Answer? {
        defer { state.next = [:] }
        return state.next[false]
    }

    /// Whether a proxy has asked this task for other credentials than all tasks send.
    func hasOwn(for proxy: Asker) -> Bool {
        state.withLock { $0.ownProxies.contains(proxy.origin) }
    }

    /// What cannot be answered any more, as with a nonce that is used up, waits for a challenge.
    func unasked(_ question: Authenticator.Request) -> Authenticator.Answer? {
        let own = state.withLock { try? $0.own.authorization(for: question) }
        return own ?? (try? store.authorization(for: question)) ?? nil
    }

    /// Takes in a response with Authentication-Info, from which the next answer is made.
    func received(_ response: HTTPResponse) {
        guard let asker = request.origin.map({ Asker($0, isProxy: false) }),
            let info = asker.info(of: response)
        else { return }
        let isOwn = state.withLock { state in
            guard let sent = state.sent[false],
                state.own.credentials(for: sent.space) == sent.credentials
            else { return false }
            state.own.take(info: info, from: asker.origin)
            return true
        }
        if !isOwn { store.take(info: info, from: asker.origin) }
    }
}

// MARK: - Challenges

extension TaskAuthentication {
    private enum Step {
        case answer(Authenticator.Answer)
        /// What is known has changed: the same challenges are looked at again.
        case again
        /// The response with the challenges is the task's.
        case none
    }

    /// What is asked for after a response with challenges; nil: that response is the task's.
    ///
    /// - Parameter proxy: Who asks, by a 407; nil: the server, by a 401.
    /// - Throws: ``ClientError`` where the hook has the task cancelled, where it is cancelled
    ///   meanwhile, and where credentials cannot be sent in the way that is asked for, or there are
    ///   some for a server whose challenges nobody can read.
    func answer(
        to response: HTTPResponse, _ content: RequestContent?, proxy: Proxy?
    ) async throws(ClientError) -> HTTPRequest? {
        let request = state.withLock { $0.request }
        guard let asker = proxy?.asker ?? request.origin.map({ Asker($0, isProxy: false) })
        else { return nil }
        // The caller's own was refused: that is for the caller to know. One for a proxy is not
        // sent: the engine takes it for a field of the last hop.
        guard asker.isProxy || !request.headerFields.contains(asker.field) else { return nil }
        let challenges: [HTTPChallenge]
        do throws(UnreadableChallenges) { challenges = try asker.challenges(of: response) } catch {
            // Who could not have answered it either way takes the response, as does whoever was
            // asked by a proxy: its 407 says what is missing.
            guard !asker.isProxy, error.isAnswerable, hasCredentials(for: asker) else {
                return nil
            }
            throw ClientError(
                .authenticationFailed,
                "credentials are asked for (\(response.status.code)), but \(error)", of: request,
                underlying: error.error)
        }
        if let proxy { useCredentials(of: proxy, asker, challenges) }
        for _ in 0..<Self.maximumDecisions {
            switch try await step(challenges, asker, response, request, content) {
            case .answer(let answer):
                state.withLock { $0.next[asker.isProxy] = answer }
                return request
            case .again: continue
            case .none: return nil
            }
        }
        return nil
    }

    /// Whether an origin has credentials, of whatever realm.
    private func hasCredentials(for asker: Asker) -> Bool {
        answersOrigin?(asker.space) == true || store.hasCredentials(for: asker.origin)
            || state.withLock { $0.own.hasCredentials(for: asker.origin) }
    }

    /// The user that a proxy was named with is told by Digest, too, where it asks for that. Basic
    /// went along already.
    private func useCredentials(
        of proxy: Proxy, _ asker: Asker,
        _ challenges: [HTTPChallenge]
    ) {
        guard let user = proxy.user, let password = proxy.password else { return }
        state.withLock { state in
            guard state.ownProxies.insert(asker.origin).inserted else { return }
            for challenge in challenges where challenge.scheme == "digest" {
                state.own.set(
                    UserCredentials(user: user, password: password),
                    for: .init(origin: asker.origin, realm: challenge.realm ?? ""))
            }
        }
    }

    private func step(
        _ challenges: [HTTPChallenge], _ asker: Asker,
        _ response: HTTPResponse, _ request: HTTPRequest, _ content: RequestContent?
    ) async throws(ClientError) -> Step {
        let question = asker.question(request, content)
        let outcome: CredentialStore.Outcome
        do throws(AuthenticationError) {
            let (sent, rejected) = state.withLock { ($0.sent[asker.isProxy], $0.rejected) }
            let own = try state.withLock { (state) throws(AuthenticationError) in
                var generator = SystemRandom()
                return try state.own.decide(
                    challenges, for: question, sent: sent, excluding: rejected,
                    sends: !asker.isProxy, using: &generator)
            }
            if case .answer(let answer) = own { return .answer(answer) }
            outcome = try await store.decide(
                challenges, for: question, sent: sent, excluding: rejected,
                ask: hook.map { asking($0, response, request) })
        } catch {
            throw ClientError(
                .authenticationFailed, "credentials cannot be sent as asked for: \(error)",
                of: request, underlying: error)
        }
        switch outcome {
        case .decided(.answer(let answer)): return .answer(answer)
        case .decided(.rejected): return .again
        case .decided: return .none
        case .cancelled: throw ClientError.cancelled().about(request)
        case .asked(let question, let disposition):
            return try step(after: disposition, to: question, request)
        }
    }

    private func step(
        after disposition: ChallengeDisposition, to question: CredentialStore.Question,
        _ request: HTTPRequest
    ) throws(ClientError) -> Step {
        state.withLock { if question.refused != nil { $0.failures += 1 } }
        switch disposition {
        case .useCredential(let credential):
            guard credential.credentials != question.refused else { return .none }
            if credential.persistence == .none {
                let space = question.offer.space
                state.withLock { state in
                    state.own.set(credential.credentials, for: space)
                    if space.origin.isProxy { state.ownProxies.insert(space.origin) }
                }
            }
            return .again
        case .performDefaultHandling, .useCertificate: return .none
        case .cancel:
            throw ClientError(
                .cancelled, "the challenge of \(question.offer.space.realm) was cancelled",
                of: request)
        case .rejectProtectionSpace:
            state.withLock { _ = $0.rejected.insert(question.offer) }
            return .again
        }
    }

    private func asking(
        _ hook: @escaping ChallengeHook, _ response: HTTPResponse, _ request: HTTPRequest
    ) -> @Sendable (CredentialStore.Question) async -> ChallengeDisposition {
        let failures = state.withLock { $0.failures }
        return { question in
            await hook(
                AuthenticationChallenge(
                    space: ProtectionSpace(question.offer.space),
                    method: .init(question.offer.scheme),
                    previousFailureCount: failures + (question.refused == nil ? 0 : 1),
                    refusedCredential: question.refused.map { Credential($0) },
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
