import Locking

/// A session's credentials by their protection spaces (`NSURLCredentialStorage`).
///
/// They are sent to the origin that requires them, and from then on preemptively: for Basic, below
/// the path of the challenged request; for Digest, where the challenge says so. Credentials that a
/// server rejects are removed. The store holds at most 1024 spaces and ignores any more.
public final class CredentialStore: Sendable {
    /// What a hook is asked for. Equal prompts are shared.
    struct Question: Hashable, Sendable {
        /// The missing credentials.
        var offer: Authenticator.Offer
        /// The credentials that were sent and rejected, or `nil` if there were none.
        var refused: UserCredentials?
    }

    /// An unanswered prompt, and the number of tasks waiting for it.
    private struct OpenQuestion {
        let shared: SharedQuestion
        var askers: Int
    }

    private struct State {
        var authenticator = Authenticator()
        var questions: [Question: OpenQuestion] = [:]
    }

    private let state = Locked(State())

    init() {}

    /// Sets the credential of a space, replacing the existing one, or removes it if it is `nil`.
    ///
    /// - Parameter credential: The credential. Its persistence is ignored: it is kept for the
    ///   lifetime of the session.
    public func set(_ credential: Credential?, for space: ProtectionSpace) {
        state.withLock { $0.authenticator.set(credential?.credentials, for: space.space) }
    }

    /// Removes all credentials, and what has been derived from them.
    public func removeAll() { state.withLock { $0.authenticator = Authenticator() } }

    /// Returns the credential of a space, or `nil` if it has none.
    public func credential(for space: ProtectionSpace) -> Credential? {
        state.withLock { $0.authenticator.credentials(for: space.space) }.map { Credential($0) }
    }

    // MARK: For tasks

    /// The result of processing challenges.
    enum Outcome: Sendable {
        case decided(Authenticator.Decision)
        /// The hook was called, for this task or for others.
        case asked(Question, ChallengeDisposition)
        case cancelled
    }

    /// Whether there are credentials for any realm of an origin.
    func hasCredentials(for origin: Authenticator.Origin) -> Bool {
        state.withLock { $0.authenticator.hasCredentials(for: origin) }
    }

    /// Whether any request may be authenticated preemptively.
    var answersUnasked: Bool { state.withLock { $0.authenticator.answersUnasked } }

    /// Returns the credentials to send with a request preemptively, or `nil` if there are none.
    func authorization(
        for request: Authenticator.Request
    ) throws(AuthenticationError) -> Authenticator.Answer? {
        try state.withLock { (state) throws(AuthenticationError) in
            try state.authenticator.authorization(for: request)
        }
    }

    /// Processes the parameters of an Authentication-Info field.
    func take(info: [String: String], from origin: Authenticator.Origin) {
        state.withLock { $0.authenticator.take(info: info, from: origin) }
    }

    /// Decides what to do about a response's challenges, and calls the hook if credentials are
    /// missing.
    ///
    /// - Parameters:
    ///   - challenges: See ``Authenticator``, as for the next three parameters. The credentials for
    ///     a proxy are created by ``authorization(for:)`` when the engine sends them.
    ///   - ask: Calls the hook, or `nil` if there is none.
    func decide(
        _ challenges: [HTTPChallenge],
        for request: Authenticator.Request, sent: Authenticator.Answer?,
        excluding excluded: Set<Authenticator.Offer>,
        ask: (@Sendable (Question) async -> ChallengeDisposition)?
    ) async throws(AuthenticationError) -> Outcome {
        // Whether there are credentials, and whether a prompt for them is open, is checked under
        // one lock: otherwise, an answer given in between would be prompted for again.
        let (decision, joined) = try state.withLock {
            (state) throws(AuthenticationError) -> (Authenticator.Decision, Joined?) in
            var generator = SystemRandom()
            let decision = try state.authenticator.decide(
                challenges, for: request, sent: sent, excluding: excluded,
                sends: !request.origin.isProxy, using: &generator)
            guard case .needsCredentials(let offers) = decision, let offer = offers.first,
                ask != nil
            else { return (decision, nil) }
            let refused = sent?.space == offer.space ? sent?.credentials : nil
            return (decision, Self.join(Question(offer: offer, refused: refused), &state))
        }
        guard let joined, let ask else { return .decided(decision) }
        if joined.isFirst {
            joined.shared.begin { [self] in
                finish(joined.question, joined.shared, await ask(joined.question))
            }
        }
        guard let answer = await joined.shared.answer() else {
            leave(joined.question, joined.shared)
            return .cancelled
        }
        return .asked(joined.question, answer)
    }

    /// A prompt that a task waits for.
    private struct Joined: Sendable {
        let question: Question
        let shared: SharedQuestion
        /// Whether the hook has to be called.
        let isFirst: Bool
    }

    private static func join(_ question: Question, _ state: inout State) -> Joined {
        var open = state.questions[question]
        let shared = open?.shared ?? SharedQuestion()
        defer {
            open = OpenQuestion(shared: shared, askers: (open?.askers ?? 0) + 1)
            state.questions[question] = open
        }
        return Joined(question: question, shared: shared, isFirst: open == nil)
    }

    /// The hook has answered. From now on, tasks find the credential in the store.
    private func finish(
        _ question: Question, _ shared: SharedQuestion, _ answer: ChallengeDisposition
    ) {
        state.withLock { state in
            guard state.questions[question]?.shared === shared else { return }
            state.questions[question] = nil
            if case .useCredential(let credential) = answer, credential.persistence == .forSession,
                credential.credentials != question.refused
            {
                state.authenticator.set(credential.credentials, for: question.offer.space)
            }
        }
        shared.answered(answer)
    }

    /// A waiting task was cancelled.
    private func leave(_ question: Question, _ shared: SharedQuestion) {
        let isAbandoned = state.withLock { state in
            guard var open = state.questions[question], open.shared === shared else {
                return false
            }
            open.askers -= 1
            state.questions[question] = open.askers == 0 ? nil : open
            return open.askers == 0
        }
        if isAbandoned { shared.abandon() }
    }
}
