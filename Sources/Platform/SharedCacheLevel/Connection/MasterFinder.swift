import EventLoop
import PinfoldResolver
import RedisProtocol

/// Asks Sentinels which server is the master: one after the other, each on a connection of its own
/// and for a bounded time. Who they name may be none, or not any longer: whoever connects to it
/// finds that out, and says so when it asks again.
final class MasterFinder {
    /// How a search has ended.
    enum Outcome {
        case master(RedisNode)
        case none(SharedLevelReason, String)
    }

    private let sentinels: SharedLevelOptions.Sentinels
    private let loop: EventLoop
    private let question: ServerQuestion
    private var search: SentinelSearch
    /// Distinguishes one search from the next.
    private var turn: UInt64 = 0
    /// The most telling of what went wrong in this search.
    private var problem: (reason: SharedLevelReason, detail: String)?
    /// Called with the outcome; `nil` while nothing is searched for.
    private var completion: ((Outcome) -> Void)?

    /// An address is short.
    private static var limits: RESPLimits {
        var limits = RESPLimits()
        limits.replyBytes = 16 << 10
        limits.bulkBytes = limits.replyBytes
        return limits
    }

    init(
        _ sentinels: SharedLevelOptions.Sentinels, resolver: Resolver?, on loop: EventLoop,
        mailbox: Mailbox<LevelMessage>
    ) {
        self.sentinels = sentinels
        self.loop = loop
        search = SentinelSearch(sentinels.nodes)
        question = ServerQuestion(
            limits: Self.limits, resolver: resolver, on: loop, mailbox: mailbox)
    }

    /// Begins a search.
    /// - Parameters:
    ///   - wasOfUse: whether the server that was found last was one to use.
    ///   - completion: called with the outcome, never by this call; not after ``stop()``.
    func find(lastWasOfUse wasOfUse: Bool, _ completion: @escaping (Outcome) -> Void) {
        stop()
        problem = nil
        self.completion = completion
        // Whoever named one that was of no use is asked last.
        _ = search.verified(wasOfUse ? .master : nil)
        proceed(search.begin())
    }

    /// Ends the search, if there is one. The Sentinel that was being asked has had its time.
    func stop() {
        turn += 1
        guard completion.take() != nil else { return }
        question.stop()
        _ = search.failed()
    }

    /// The address of a Sentinel was looked up.
    func resolved(_ found: ServerAddresses, attempt: UInt64) {
        question.resolved(found, attempt: attempt)
    }

    private func proceed(_ step: SentinelSearch.Step) {
        switch step {
        case .ask(let node): ask(node)
        case .verify(let node), .use(let node): end(.master(node))
        case .giveUp:
            let (reason, detail) = problem ?? (.unreachable, "there are no Sentinels")
            // Whoever searches is not called back by its own call.
            let turn = turn
            loop.afterTurn { [self] in if turn == self.turn { end(.none(reason, detail)) } }
        }
    }

    private func end(_ outcome: Outcome) {
        guard let completion = completion.take() else { return }
        question.stop()
        completion(outcome)
    }

    // MARK: One Sentinel

    private func ask(_ node: RedisNode) {
        question.ask(
            SentinelReplies.askMaster(Array(sentinels.master.utf8)),
            of: .tcp(host: node.host, port: node.port, tls: sentinels.tls),
            user: sentinels.user, password: sentinels.password,
            within: sentinels.timeoutMilliseconds
        ) { [unowned self] outcome in
            switch outcome {
            case .reply(let reply): take(reply, from: node)
            case .failed(let reason, let detail): failed(node, reason, detail)
            }
        }
    }

    private func take(_ reply: RESPValue, from node: RedisNode) {
        do throws(SentinelReplyError) {
            proceed(search.named(try SentinelReplies.master(reply)))
        } catch {
            failed(node, Self.reason(of: error), "\(error)")
        }
    }

    private static func reason(of error: SentinelReplyError) -> SharedLevelReason {
        switch error {
        case .unknownMaster: .refused
        case .malformed: .protocolError
        case .refused(let error): SharedLevelReason(error.code)
        }
    }

    private func failed(_ node: RedisNode, _ reason: SharedLevelReason, _ detail: String) {
        note(reason, "Sentinel \(node): \(detail)")
        proceed(search.failed())
    }

    private func note(_ reason: SharedLevelReason, _ detail: String) {
        // What lasts says more than that another one could not be reached.
        if let known = problem, known.reason.isLasting, !reason.isLasting { return }
        problem = (reason, detail)
    }
}
