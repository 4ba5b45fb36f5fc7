import HTTPAuthentication
import Locking

/// The credentials of a session, by their protection spaces (`NSURLCredentialStorage`).
///
/// They are sent to the origin that asks for them, and from then on without being asked: Basic
/// below the path that asked, Digest where its challenge says. Those that a server refuses are
/// forgotten. At most 1024 spaces are kept; what is set beyond that is not.
public final class CredentialStore: Sendable {
    /// What a hook is asked; two that are equal are one.
    struct Question: Hashable, Sendable {
        /// Which credentials are missing.
        var offer: Authenticator.Offer
        /// Those that were sent, and refused; nil: none were.
        var refused: UserCredentials?
    }

    /// A question, and how many tasks want to know.
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

    /// Sets the credential of a space, in place of the one that it had; nil removes it.
    ///
    /// - Parameter credential: Its persistence does not count: it is kept as long as the session.
    public func set(_ credential: Credential?, for space: ProtectionSpace) {
        state.withLock { $0.authenticator.set(credential?.credentials, for: space.space) }
    }

    /// Forgets all credentials, and what was proved with them.
    public func removeAll() { state.withLock { $0.authenticator = Authenticator() } }

    /// The credential of a space; nil: it has none.
    public func credential(for space: ProtectionSpace) -> Credential? {
        state.withLock { $0.authenticator.credentials(for: space.space) }.map { Credential($0) }
    }

    // MARK: For tasks

    /// What comes of a challenge.
    enum Outcome: Sendable {
        case decided(Authenticator.Decision)
        /// The hook was asked, for this task or for others.
        case asked(Question, ChallengeDisposition)
        case cancelled
    }

    /// Whether an origin has credentials, of whatever realm.
    func hasCredentials(for origin: Authenticator.Origin) -> Bool {
        state.withLock { $0.authenticator.hasCredentials(for: origin) }
    }

    /// Whether some request takes credentials along unasked.
    var answersUnasked: Bool { state.withLock { $0.authenticator.answersUnasked } }

    /// What a request takes along unasked; nil: nothing.
    func authorization(
        for request: Authenticator.Request
    ) throws(AuthenticationError) -> Authenticator.Answer? {
        try state.withLock { (state) throws(AuthenticationError) in
            try state.authenticator.authorization(for: request)
        }
    }

    /// Takes what a server says to an answer that it has accepted.
    func take(info: [String: String], from origin: Authenticator.Origin) {
        state.withLock { $0.authenticator.take(info: info, from: origin) }
    }

    /// Decides about the challenges of a response, and asks the hook where credentials are missing.
    ///
    /// - Parameters:
    ///   - challenges: As for ``Authenticator``, as are the next three. What goes to a proxy is
    ///     made by ``authorization(for:)`` when the engine sends it.
    ///   - ask: Asks the hook; nil: there is none.
    func decide(
        _ challenges: [HTTPChallenge],
        for request: Authenticator.Request, sent: Authenticator.Answer?,
        excluding excluded: Set<Authenticator.Offer>,
        ask: (@Sendable (Question) async -> ChallengeDisposition)?
    ) async throws(AuthenticationError) -> Outcome {
        // Whether there are credentials, and whether somebody is being asked for them, is looked
        // at under one lock: else an answer that comes in between would be asked for again.
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

    /// A question that a task waits for.
    private struct Joined: Sendable {
        let question: Question
        let shared: SharedQuestion
        /// It is to be asked.
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

    /// The hook has answered: whoever asks from now on finds the credential.
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

    /// A task that waited was cancelled.
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
