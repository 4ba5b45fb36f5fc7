import EventLoop
import PinfoldResolver
import RedisProtocol

/// Asks the nodes of a cluster which master has which slots: one after the other, each on a
/// connection for this alone and for a bounded time, until one says so.
final class TopologyFinder {
    /// How a search has ended.
    enum Outcome {
        case found(ClusterTopology)
        case none(SharedLevelReason, String)
    }

    private let options: SharedLevelOptions.Cluster
    private let session: RedisSession
    private let question: ServerQuestion
    private var rest: ArraySlice<RedisNode> = []
    /// The most telling of what went wrong in this search.
    private var problem: (reason: SharedLevelReason, detail: String)?
    /// Called with the outcome; `nil` while nothing is searched for.
    private var completion: ((Outcome) -> Void)?

    /// Slots that were moved one by one are a long list.
    private static var limits: RESPLimits {
        var limits = RESPLimits()
        limits.elements = 1 << 20
        limits.replyBytes = 16 << 20
        return limits
    }

    init(
        _ options: SharedLevelOptions.Cluster, session: RedisSession, resolver: Resolver?,
        on loop: EventLoop, mailbox: Mailbox<LevelMessage>
    ) {
        self.options = options
        self.session = session
        question = ServerQuestion(
            limits: Self.limits, resolver: resolver, on: loop, mailbox: mailbox)
    }

    var isSearching: Bool { completion != nil }

    /// Begins a search.
    /// - Parameters:
    ///   - known: the nodes that are asked first; then those are that the configuration names.
    ///   - completion: called with the outcome, never by this call; not after ``stop()``.
    func find(first known: [RedisNode], _ completion: @escaping (Outcome) -> Void) {
        stop()
        problem = nil
        rest = (known + options.nodes.filter { !known.contains($0) })[...]
        self.completion = completion
        proceed()
    }

    func stop() {
        completion = nil
        question.stop()
    }

    /// The address of a node was looked up.
    func resolved(_ found: ServerAddresses, attempt: UInt64) {
        question.resolved(found, attempt: attempt)
    }

    private func proceed() {
        guard let node = rest.popFirst() else {
            let (reason, detail) = problem ?? (.unreachable, "there are no nodes")
            return end(.none(reason, detail))
        }
        question.ask(
            RedisCommand("CLUSTER", "SLOTS"),
            of: .tcp(host: node.host, port: node.port, tls: options.tls(node)),
            user: session.user, password: session.password, within: options.timeoutMilliseconds
        ) { [unowned self] outcome in
            switch outcome {
            case .reply(let reply): take(reply, from: node)
            case .failed(let reason, let detail): failed(node, reason, detail)
            }
        }
    }

    private func take(_ reply: RESPValue, from node: RedisNode) {
        if let error = reply.redisError {
            return failed(node, SharedLevelReason(error.code), "\(error)")
        }
        do throws(ClusterReplyError) {
            let topology = try ClusterTopology(slots: reply, asked: node)
            guard !topology.nodes.isEmpty else {
                return failed(node, .loading, "it knows no master of any slot")
            }
            end(.found(topology))
        } catch {
            failed(node, .protocolError, "\(error)")
        }
    }

    private func failed(_ node: RedisNode, _ reason: SharedLevelReason, _ detail: String) {
        // What lasts says more than that another one could not be reached.
        if problem?.reason.isLasting != true || reason.isLasting {
            problem = (reason, "node \(node): \(detail)")
        }
        proceed()
    }

    private func end(_ outcome: Outcome) {
        guard let completion = completion.take() else { return }
        question.stop()
        completion(outcome)
    }
}
