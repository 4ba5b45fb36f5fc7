import Locking

/// A session's credentials by their protection spaces (`NSURLCredentialStorage`).
///
/// They are sent to the origin that requires them, and from then on preemptively: for Basic, below
/// the path of the challenged request; for Digest, where the challenge says so. Credentials that a
/// server rejects are removed. The store holds at most 1024 spaces and ignores any more.
public final class CredentialStore: Sendable {
    /// What a hook is asked for. Equal prompts are shared.
    struct Prompt: Hashable, Sendable {
        /// The missing credentials.
        var offer: Authenticator.Offer
        /// The credentials that were sent and rejected, or `nil` if there were none.
        var refused: UserCredentials?
    }

    /// An unanswered prompt, and the number of tasks waiting for it.
    private struct OpenPrompt {
        let shared: SharedPrompt<ChallengeDisposition>
        var waitingTasks: Int
    }

    private struct State {
        var authenticator = Authenticator()
        var prompts: [Prompt: OpenPrompt] = [:]
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

    // MARK: Used by tasks

    /// The result of processing challenges.
    enum Outcome: Sendable {
        case decided(Authenticator.Decision)
        /// The hook was called, for this task or for others.
        case asked(Prompt, ChallengeDisposition)
        case cancelled
    }

    /// Whether there are credentials for any realm of an origin.
    func hasCredentials(for origin: Authenticator.Origin) -> Bool {
        state.withLock { $0.authenticator.hasCredentials(for: origin) }
    }

    /// Whether any request may be authenticated preemptively.
    var authenticatesPreemptively: Bool {
        state.withLock { $0.authenticator.authenticatesPreemptively }
    }

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
        ask: (@Sendable (Prompt) async -> ChallengeDisposition)?
    ) async throws(AuthenticationError) -> Outcome {
        // Whether there are credentials, and whether a prompt for them is open, is checked under
        // one lock: otherwise, an answer given in between would be prompted for again.
        let (decision, joined) = try state.withLock {
            (state) throws(AuthenticationError) -> (Authenticator.Decision, JoinedPrompt?) in
            var generator = SystemRandom()
            let decision = try state.authenticator.decide(
                challenges, for: request, sent: sent, excluding: excluded,
                sends: !request.origin.isProxy, using: &generator)
            guard case .needsCredentials(let offers) = decision, let offer = offers.first,
                ask != nil
            else { return (decision, nil) }
            let refused = sent?.space == offer.space ? sent?.credentials : nil
            return (decision, Self.join(Prompt(offer: offer, refused: refused), &state))
        }
        guard let joined, let ask else { return .decided(decision) }
        if joined.isFirst {
            joined.shared.begin { [self] in
                finish(joined.prompt, joined.shared, await ask(joined.prompt))
            }
        }
        guard let answer = await joined.shared.answer() else {
            leave(joined.prompt, joined.shared)
            return .cancelled
        }
        return .asked(joined.prompt, answer)
    }

    /// A prompt that a task waits for.
    private struct JoinedPrompt: Sendable {
        let prompt: Prompt
        let shared: SharedPrompt<ChallengeDisposition>
        /// Whether the hook has to be called.
        let isFirst: Bool
    }

    private static func join(_ prompt: Prompt, _ state: inout State) -> JoinedPrompt {
        var open = state.prompts[prompt]
        let shared = open?.shared ?? SharedPrompt<ChallengeDisposition>()
        defer {
            open = OpenPrompt(shared: shared, waitingTasks: (open?.waitingTasks ?? 0) + 1)
            state.prompts[prompt] = open
        }
        return JoinedPrompt(prompt: prompt, shared: shared, isFirst: open == nil)
    }

    /// The hook has answered. From now on, tasks find the credential in the store.
    private func finish(
        _ prompt: Prompt, _ shared: SharedPrompt<ChallengeDisposition>,
        _ answer: ChallengeDisposition
    ) {
        state.withLock { state in
            guard state.prompts[prompt]?.shared === shared else { return }
            state.prompts[prompt] = nil
            if case .useCredential(let credential) = answer, credential.persistence == .forSession,
                credential.credentials != prompt.refused
            {
                state.authenticator.set(credential.credentials, for: prompt.offer.space)
            }
        }
        shared.answered(answer)
    }

    /// A waiting task was cancelled.
    private func leave(_ prompt: Prompt, _ shared: SharedPrompt<ChallengeDisposition>) {
        let isAbandoned = state.withLock { state in
            guard var open = state.prompts[prompt], open.shared === shared else {
                return false
            }
            open.waitingTasks -= 1
            state.prompts[prompt] = open.waitingTasks == 0 ? nil : open
            return open.waitingTasks == 0
        }
        if isAbandoned { shared.abandon() }
    }
}
