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
        var request: HTTPRequest?
        /// What it took along for the server, and for the proxy.
        var sent: [Bool: Authenticator.Answer] = [:]
        /// What the next request takes along instead.
        var next: [Bool: Authenticator.Answer] = [:]
        /// Has credentials that are for this task alone.
        var own = Authenticator()
        /// What the hook does not want to answer.
        var rejected: Set<Authenticator.Offer> = []
        var failures = 0
    }

    private let store: CredentialStore
    private let hook: ChallengeHook?
    private let state = Locked(State())

    init(_ store: CredentialStore, hook: ChallengeHook?) {
        self.store = store
        self.hook = hook
    }

    /// A request as it is sent. A field of the caller's own is left as it is.
    ///
    /// - Parameter proxy: The proxy that is given the request itself; nil: there is none, or only
    ///   for a tunnel.
    func prepared(
        _ request: HTTPRequest, _ content: RequestContent?, proxy: RequestOrigin?
    ) -> HTTPRequest {
        var prepared = request
        let next = state.withLock { state in
            state.request = request
            state.sent = [:]
            defer { state.next = [:] }
            return state.next
        }
        for asker in Self.askers(request.origin, proxy: proxy)
        where !request.headerFields.contains(asker.field) {
            let answer = next[asker.isProxy] ?? unasked(asker.question(request, content))
            guard let answer else { continue }
            prepared.headerFields[asker.field] = answer.value
            state.withLock { $0.sent[asker.isProxy] = answer }
        }
        return prepared
    }

    /// What cannot be answered any more, as with a nonce that is used up, waits for a challenge.
    private func unasked(_ question: Authenticator.Request) -> Authenticator.Answer? {
        let own = state.withLock { try? $0.own.authorization(for: question) }
        return own ?? (try? store.authorization(for: question)) ?? nil
    }

    /// A response, which may say what the next answer is made of.
    func received(_ response: HTTPResponse, proxy: RequestOrigin?) {
        let origin = state.withLock { $0.request?.origin }
        for asker in Self.askers(origin, proxy: proxy) {
            guard let info = asker.info(of: response) else { continue }
            let isOwn = state.withLock { state in
                guard let sent = state.sent[asker.isProxy],
                    state.own.credentials(for: sent.space) == sent.credentials
                else { return false }
                state.own.take(info: info, from: asker.origin)
                return true
            }
            if !isOwn { store.take(info: info, from: asker.origin) }
        }
    }

    private static func askers(_ origin: RequestOrigin?, proxy: RequestOrigin?) -> [Asker] {
        [origin.map { Asker($0, isProxy: false) }, proxy.map { Asker($0, isProxy: true) }]
            .compactMap { $0 }
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
    ///   meanwhile, and where credentials cannot be sent in the way that is asked for.
    func answer(
        to response: HTTPResponse, _ content: RequestContent?, proxy: RequestOrigin?
    ) async throws(ClientError) -> HTTPRequest? {
        let request = state.withLock { $0.request }
        guard let request, let origin = proxy ?? request.origin else { return nil }
        let asker = Asker(origin, isProxy: proxy != nil)
        // The caller's own was refused: that is for the caller to know.
        guard !request.headerFields.contains(asker.field) else { return nil }
        let challenges = asker.challenges(of: response)
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

    private func step(
        _ challenges: [HTTPAuthentication.AuthenticationChallenge], _ asker: Asker,
        _ response: HTTPResponse, _ request: HTTPRequest, _ content: RequestContent?
    ) async throws(ClientError) -> Step {
        let question = asker.question(request, content)
        let outcome: CredentialStore.Outcome
        do throws(AuthenticationError) {
            let (sent, rejected) = state.withLock { ($0.sent[asker.isProxy], $0.rejected) }
            let own = try state.withLock { (state) throws(AuthenticationError) in
                var generator = SystemRandom()
                return try state.own.decide(
                    challenges, for: question, sent: sent, excluding: rejected, using: &generator)
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
                state.withLock { $0.own.set(credential.credentials, for: space) }
            }
            return .again
        case .performDefaultHandling: return .none
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
