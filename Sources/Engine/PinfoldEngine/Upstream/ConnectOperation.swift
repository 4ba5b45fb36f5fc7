import Clocks
import EventLoop
import HTTPCore
import PinfoldResolver

/// A connection to an address. Its owner registers and closes it.
package struct EstablishedConnection {
    package let transport: Transport
    /// The address that it is connected to: the parent's, if it is a tunnel through one.
    package let endpoint: Endpoint
    /// The parent that it leads through; `nil` for a direct connection.
    package let parent: UpstreamProxy?
    /// What the server has sent already through a tunnel; `nil` if nothing.
    package let leftover: Buffer?

    package init(
        transport: Transport, endpoint: Endpoint, parent: UpstreamProxy? = nil,
        leftover: Buffer? = nil
    ) {
        self.transport = transport
        self.endpoint = endpoint
        self.parent = parent
        self.leftover = leftover
    }
}

/// Establishes one TCP connection to a name: resolves it, omits refused addresses, and races the
/// remaining ones (RFC 8305).
final class ConnectOperation: EventHandler {
    /// Called once when an operation ends, never from within `start`.
    typealias Completion = (Result<EstablishedConnection, StreamError>) -> Void

    /// One attempt's socket.
    private final class Attempt: EventHandler {
        let descriptor: Int32
        private let index: Int
        /// Unowned because the operation owns its attempts; unsafe because it closes them before it
        /// ends.
        private unowned(unsafe) let operation: ConnectOperation

        init(_ descriptor: Int32, index: Int, operation: ConnectOperation) {
            self.descriptor = descriptor
            self.index = index
            self.operation = operation
        }

        override func ready(_ readiness: Readiness) {
            guard readiness.mayWrite else { return }
            let sockets = operation.environment.sockets
            operation.attemptEnded(index, sockets.connectionError(descriptor))
        }
    }

    let environment: Environment
    private let host: String
    private let port: UInt16
    /// The addresses to connect to; `nil` for those that the name has.
    private let addresses: [IPAddress]?
    /// The client for which it connects; `nil` if for none in particular.
    private let client: IPNetwork?
    private let destinationCheck: DestinationCheck
    /// Called once, unless the operation is cancelled; then released, because it may refer back.
    private var completion: Completion?
    private var plan: HappyEyeballs
    private var attempts: [Attempt?] = []
    private var lastRefusal: ExchangeError?
    /// Addresses that may not be connected to, as many as are reported.
    private var refused: [IPAddress] = []
    /// Why attempts failed, by their indexes.
    private var errors: [Int: Errno] = [:]
    private var lookupFailure: ResolveError?
    private var overallDeadline: Int64 = 0
    private var raceTimer = Int64.max
    private var finished = false
    private let started: Int64
    /// When the lookup began; 0 if there was none.
    private var lookupStarted: Int64 = 0
    /// Ends a lookup by another source than the resolver.
    private var cancelLookup: (@Sendable () -> Void)?
    /// Where it notes what it is doing.
    let timeline: ConnectionTimeline

    /// - Parameters:
    ///   - client: the client in whose share of the lookups it counts.
    ///   - rules: which addresses may be connected to; `nil` allows all.
    ///   - hostMatch: which patterns of the configuration match the name.
    ///   - addresses: the addresses to connect to; `nil` for those that the name has.
    ///   - isParent: whether it is a parent, which must not be the gateway itself.
    ///   - timeline: where it notes what it is doing; the caller finishes it.
    init(
        environment: Environment, host: String, port: UInt16, client: IPNetwork?,
        rules: DestinationRules?, hostMatch: DestinationRules.HostMatch,
        addresses: [IPAddress]? = nil, isParent: Bool = false,
        timeline: ConnectionTimeline = ConnectionTimeline(), completion: @escaping Completion
    ) {
        self.environment = environment
        self.host = host
        self.port = port
        self.addresses = addresses
        self.client = client
        destinationCheck = DestinationCheck(
            rules: rules, match: hostMatch, port: port, isParent: isParent)
        self.timeline = timeline
        self.completion = completion
        plan = HappyEyeballs(port: port)
        started = Clock.monotonicMicroseconds()
    }

    /// Starts the operation, which the loop keeps alive until it ends.
    func start(timeoutMilliseconds: Int64) {
        do {
            try environment.loop.add(self)
        } catch {
            return environment.loop.afterTurn { self.finish(.failure(.connectFailed(error))) }
        }
        overallDeadline = environment.loop.now + timeoutMilliseconds
        updateDeadline()
        if let addresses {
            timeline.enter(.connect, at: started)
            return environment.loop.afterTurn { self.arrived(addresses, isComplete: true) }
        }
        if let names = environment.shared.names, look(up: names) { return }
        if let known = environment.shared.resolver.cached(
            name: host, nowMilliseconds: environment.loop.monotonicNow)
        {
            if known.isFromCache { environment.metrics.add(.dnsCacheHits) }
            timeline.enter(known.isFound ? .connect : .dns, at: started)
            environment.loop.afterTurn { self.resolved(known) }
            return
        }
        environment.metrics.add(.dnsQueries)
        lookupStarted = Clock.monotonicMicroseconds()
        timeline.enter(.dns, at: lookupStarted)
        let (token, mailbox) = (token, environment.mailbox)
        environment.shared.resolver.resolve(
            name: host, client: client, later: { mailbox.post(.resolvedLater(token, $0)) },
            completion: { mailbox.post(.resolved(token, $0)) })
    }

    /// Asks another source than the resolver. Returns false if that does not know the name.
    private func look(up names: any NameSource) -> Bool {
        let (token, mailbox) = (token, environment.mailbox)
        let answer = names.lookUp(host: host, port: port) { mailbox.post(.resolved(token, $0)) }
        switch answer {
        case .unknown: return false
        case .addresses(let addresses):
            timeline.enter(.connect, at: started)
            environment.loop.afterTurn {
                addresses.isEmpty
                    ? self.resolved(.failed(.noData)) : self.arrived(addresses, isComplete: true)
            }
        case .later(let cancel):
            cancelLookup = cancel
            timeline.enter(.dns, at: started)
        }
        return true
    }

    /// The connection is no longer needed.
    func cancel() {
        guard !finished else { return }
        perform(plan.handle(.cancelled))
        close()
    }

    /// Handles the lookup's answer.
    func resolved(_ result: ResolveResult) {
        guard !finished else { return }
        cancelLookup = nil
        if lookupStarted > 0 { countLookup(result) }
        switch result {
        case .resolved(let answer): arrived(answer)
        case .failed(let failure):
            lookupFailure = failure
            perform(
                plan.handle(
                    .answersArrived([], isComplete: true, nowMilliseconds: environment.loop.now)))
        }
    }

    private func countLookup(_ result: ResolveResult) {
        environment.metrics.record(
            .dnsQuery,
            microseconds: UInt64(max(0, Clock.monotonicMicroseconds() - lookupStarted)))
        switch result {
        case .resolved: environment.metrics.add(.dnsAnswersFound)
        case .failed(.nxdomain): environment.metrics.add(.dnsAnswersNoSuchName)
        case .failed(.noData): environment.metrics.add(.dnsAnswersNoData)
        case .failed(.timeout): environment.metrics.add(.dnsAnswersTimeout)
        case .failed(.unreachable): environment.metrics.add(.dnsAnswersUnreachable)
        case .failed(.refused): environment.metrics.add(.dnsAnswersRefused)
        case .failed(.serverFailure): environment.metrics.add(.dnsAnswersServerFailure)
        case .failed: environment.metrics.add(.dnsAnswersOther)
        }
    }

    /// Handles more addresses of the same name, or its first ones.
    func arrived(_ answer: ResolvedAnswer) {
        arrived(answer.addresses, isComplete: answer.isComplete)
    }

    private func arrived(_ addresses: [IPAddress], isComplete: Bool) {
        guard !finished else { return }
        let allowed = addresses.filter { address in
            guard let refusal = refusal(of: address) else { return true }
            lastRefusal = refusal
            if refused.count < Self.reportedRefusals { refused.append(address) }
            return false
        }
        perform(
            plan.handle(
                .answersArrived(
                    allowed, isComplete: isComplete, nowMilliseconds: environment.loop.now)))
    }

    /// Why an address may not be connected to.
    private func refusal(of address: IPAddress) -> ExchangeError? {
        // A copy, so that the lock is not held while the system is asked for a route.
        destinationCheck.refusal(of: address, own: environment.shared.ownListeners.withLock { $0 })
    }

    private func attemptEnded(_ index: Int, _ error: Errno?) {
        guard !finished else { return }
        if let error {
            errors[index] = error
            environment.trace("connection failed", ["host": "\(host)", "error": "\(error)"])
            drop(index)
            perform(
                plan.handle(
                    .attemptFailed(index, errno: error.code, nowMilliseconds: environment.loop.now))
            )
        } else {
            perform(plan.handle(.attemptConnected(index)))
        }
    }

    private func perform(_ actions: [HappyEyeballs.Action]) {
        for action in actions {
            guard !finished else { return }
            switch action {
            case .connect(let endpoint, let index): connect(endpoint, index)
            case .setTimer(let milliseconds):
                raceTimer = environment.loop.now + milliseconds
                updateDeadline()
            case .use(let index): use(index)
            case .cancelOthers, .cancelAll:
                for index in attempts.indices { drop(index) }
            case .discard(let index): drop(index)
            case .fail(let failure): finish(.failure(fault(of: failure)))
            }
        }
    }

    private func connect(_ endpoint: Endpoint, _ index: Int) {
        while attempts.count <= index { attempts.append(nil) }
        environment.trace("connecting", ["host": "\(host)", "server": "\(endpoint)"])
        timeline.tried = endpoint
        timeline.enter(.connect, at: Clock.monotonicMicroseconds())
        do throws(Errno) {
            let descriptor = try openSocket(to: endpoint)
            environment.shared.ownConnections.began(descriptor, to: endpoint)
            let attempt = Attempt(descriptor, index: index, operation: self)
            attempts[index] = attempt
            do throws(Errno) {
                try environment.loop.add(attempt, descriptor: descriptor)
            } catch {
                Descriptors.close(descriptor)
                attempts[index] = nil
                throw error
            }
        } catch {
            // Reported after the turn, because the plan is still returning actions.
            environment.loop.afterTurn { self.attemptEnded(index, error) }
        }
    }

    /// Starts a connection; if descriptors have run out, tries again after idle clients were
    /// closed.
    private func openSocket(to endpoint: Endpoint) throws(Errno) -> Int32 {
        do throws(Errno) {
            return try environment.sockets.connect(to: endpoint)
        } catch {
            guard error.isOutOfDescriptors, environment.host?.freeDescriptors() ?? false else {
                throw error
            }
            return try environment.sockets.connect(to: endpoint)
        }
    }

    private func use(_ index: Int) {
        guard let attempt = attempts[index] else { return }
        attempts[index] = nil
        environment.loop.remove(attempt, keepingOpen: attempt.descriptor)
        let endpoint = plan.attempts[index]
        for other in attempts.indices { drop(other) }
        environment.trace("connected", ["host": "\(host)", "server": "\(endpoint)"])
        let now = Clock.monotonicMicroseconds()
        timeline.finish(at: now)
        environment.metrics.record(
            .upstreamConnect, microseconds: UInt64(max(0, now - started)))
        finish(
            .success(
                EstablishedConnection(
                    transport: Transport(descriptor: attempt.descriptor), endpoint: endpoint)))
    }

    private func drop(_ index: Int) {
        guard index < attempts.count, let attempt = attempts[index] else { return }
        attempts[index] = nil
        environment.loop.remove(attempt)
        Descriptors.close(attempt.descriptor)
    }

    private func fault(of failure: HappyEyeballs.ConnectionError) -> ExchangeError {
        switch failure {
        case .attempt(_, _, let errno):
            // That another address of the name cannot be reached is of no use to the client.
            if case .access(.ownListenerRefused) = lastRefusal {
                return .access(.ownListenerRefused)
            }
            let error = Errno(code: errno)
            return error.isExhaustion ? .gateway(.descriptorsExhausted) : .connectFailed(error)
        case .noAddress:
            if let lastRefusal { return lastRefusal }
            return .nameNotResolved(lookupFailure ?? .noData)
        }
    }

    private func updateDeadline() {
        environment.loop.setDeadline(
            self, after: max(0, min(overallDeadline, raceTimer) - environment.loop.now))
    }

    override func deadlineReached() {
        guard !finished else { return }
        if environment.loop.now >= overallDeadline {
            _ = plan.handle(.cancelled)
            return finish(.failure(.connectTimeout))
        }
        raceTimer = .max
        perform(plan.handle(.timerFired(nowMilliseconds: environment.loop.now)))
        if !finished { updateDeadline() }
    }

    private func finish(_ result: Result<EstablishedConnection, ExchangeError>) {
        guard !finished, let completion else { return }
        close()
        if case .failure(let fault) = result {
            environment.countConnectFailure(fault)
            timeline.finish(at: Clock.monotonicMicroseconds())
        }
        completion(result.mapError { StreamError($0, failedAttempts, by: timeline) })
    }

    private static let reportedRefusals = 16

    private var failedAttempts: FailedAttempts {
        let refused = refused.map {
            (endpoint: Endpoint(address: $0, port: port), outcome: FailedAttempts.Outcome.refused)
        }
        return FailedAttempts(
            refused
                + plan.attempts.enumerated().map { index, endpoint in
                    (endpoint, errors[index].map { .failed($0) } ?? .unanswered)
                })
    }

    private func close() {
        finished = true
        completion = nil
        cancelLookup.take()?()
        for index in attempts.indices { drop(index) }
        environment.loop.remove(self)
    }
}

extension ResolveResult {
    /// Whether the name has an address.
    fileprivate var isFound: Bool { if case .resolved = self { true } else { false } }

    /// Whether the answer came from the cache. Not so for literals and names that need no lookup.
    fileprivate var isFromCache: Bool {
        switch self {
        case .resolved(let answer): answer.source == .dns
        case .failed(let failure): failure != .badName
        }
    }
}
