import Clocks
import EventLoop
import HTTPCore
import PinfoldResolver

/// Finds out the addresses of a server that a proxy is to be asked for, and whether the rules allow
/// them.
final class AddressCheck: EventHandler, LookupConsumer, TunnelOpening {
    /// Called once, after `start` has returned; not after `cancel`.
    typealias Completion = (Result<[IPAddress], ExchangeError>) -> Void

    let environment: Environment
    private let host: String
    private let client: IPNetwork?
    private let check: DestinationCheck
    private let choice: Choice
    /// Where it notes that it resolves the name, if it does.
    let timeline: ConnectionTimeline
    private var completion: Completion?

    /// Who chooses the address that is connected to.
    enum Choice {
        /// The gateway: one that is allowed is enough.
        case gateway
        /// The proxy, which resolves the name itself: none may be refused.
        case proxy
    }

    /// - Parameters:
    ///   - client: the client in whose share of the lookups it counts.
    ///   - timeline: where it notes that it resolves the name, if it does.
    init(
        environment: Environment, host: String, client: IPNetwork?, check: DestinationCheck,
        choice: Choice, timeline: ConnectionTimeline = ConnectionTimeline(),
        completion: @escaping Completion
    ) {
        self.environment = environment
        self.host = host
        self.client = client
        self.check = check
        self.choice = choice
        self.timeline = timeline
        self.completion = completion
    }

    func start(timeoutMilliseconds: Int64) {
        do throws(Errno) {
            try environment.loop.add(self)
        } catch {
            return environment.loop.afterTurn { self.finish(.failure(.connectFailed(error))) }
        }
        environment.loop.setDeadline(self, after: timeoutMilliseconds)
        let resolver = environment.shared.resolver
        if let known = resolver.cached(
            name: host, nowMilliseconds: environment.loop.monotonicNow), known.isComplete
        {
            return environment.loop.afterTurn { self.resolved(known) }
        }
        environment.metrics.add(.dnsQueries)
        timeline.enter(.dns, at: Clock.monotonicMicroseconds())
        let (token, mailbox) = (token, environment.mailbox)
        resolver.resolve(
            name: host, client: client, later: { mailbox.post(.resolvedLater(token, $0)) },
            completion: { mailbox.post(.resolved(token, $0)) })
    }

    func cancel() { close() }

    override func deadlineReached() { finish(.failure(.nameNotResolved(.timeout))) }

    func resolved(_ result: ResolveResult) {
        switch result {
        case .resolved(let answer): arrived(answer)
        case .failed(let failure): finish(.failure(.nameNotResolved(failure)))
        }
    }

    /// Of a part of the answer nothing follows for the rest.
    func arrived(_ answer: ResolvedAnswer) {
        guard completion != nil, answer.isComplete else { return }
        let own = environment.shared.ownListeners.withLock { $0 }
        finish(Self.judge(answer.addresses, choice) { check.refusal(of: $0, own: own) })
    }

    /// Which of the addresses may be asked for, or why none may.
    static func judge(
        _ addresses: [IPAddress], _ choice: Choice, refusal: (IPAddress) -> ExchangeError?
    ) -> Result<[IPAddress], ExchangeError> {
        var allowed: [IPAddress] = []
        var last: ExchangeError?
        for address in addresses {
            guard let refused = refusal(address) else {
                allowed.append(address)
                continue
            }
            if case .proxy = choice { return .failure(refused) }
            last = refused
        }
        guard allowed.isEmpty else { return .success(allowed) }
        return .failure(last ?? .nameNotResolved(.noData))
    }

    private func finish(_ result: Result<[IPAddress], ExchangeError>) {
        let completion = completion
        close()
        completion?(result)
    }

    private func close() {
        completion = nil
        environment.loop.remove(self)
    }
}

/// An operation that waits for the addresses of a name.
protocol LookupConsumer: EventHandler {
    /// Handles the answer, of which a part may be missing.
    func resolved(_ result: ResolveResult)
    /// Handles more addresses.
    func arrived(_ answer: ResolvedAnswer)
}

extension ResolveResult {
    /// Whether nothing follows it.
    fileprivate var isComplete: Bool {
        switch self {
        case .resolved(let answer): answer.isComplete
        case .failed: true
        }
    }
}

extension ConnectOperation: LookupConsumer {}

extension AddressCheck: EnvironmentPart {
    func closeWithEnvironment() { cancel() }
}
