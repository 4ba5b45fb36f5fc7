import EventLoop
import HTTPCore
import PinfoldConfiguration
import ProxyProtocols

/// A tunnel that may be relayed although its host is intercepted: it has been answered, and what
/// happens to it depends on which side sends first, and what.
///
///                   ┌───────────┐ the client: TLS    ┌───────────┐
///     200 to CONNECT│ listening │ ─────────────────► │ verifying │ ──► intercepted
///                   └───────────┘                    └───────────┘
///      nobody for a while │  │ the client: other bytes
///     (the server is now   │  ▼
///      connected, too)     │ ┌─────────┐
///       the server speaks  └►│ joining │ ──► passed
///                            └─────────┘
///
/// The server is not contacted until the protocol is known: one that does not speak TLS would take
/// a handshake for an attack.
final class UndecidedTunnel: AnsweredTunnel {
    /// How the tunnel continues.
    enum Outcome {
        /// The server is the right one.
        case intercepted(DownstreamHandover, InterceptionPolicy, OriginVerification.Server)
        /// The client speaks TLS, but must not be shown a certificate for the server.
        case refused(DownstreamHandover, InterceptionPolicy, StreamError)
        /// Relay what both sides send.
        case passed(
            DownstreamHandover, to: Server, TimeoutsConfiguration, InterceptionPass)
        /// It has ended and is closed.
        case ended(StreamError?)
    }

    private enum Step { case listening, verifying, joining, over }

    /// After how many milliseconds of silence from the client the server is connected to, which may
    /// be the side that sends first. A client that speaks TLS after that is still intercepted.
    static let silenceMilliseconds = OpeningProtocol.silenceMilliseconds

    private var ended: ((Outcome) -> Void)?
    private var step = Step.listening
    /// When a silent client is given up, in the loop's milliseconds.
    private var givesUpAt: Int64 = 0
    /// The generation of the rules under which the server was connected to while the client is
    /// silent.
    private var trustGeneration: UInt64 = 0
    /// The timeouts of the configuration under which the server is contacted in clear text.
    private var timeouts: TimeoutsConfiguration

    /// - Parameters:
    ///   - handover: the client's connection, with the response to CONNECT queued.
    ///   - request: what asked for the tunnel, for rules; `nil` if none apply.
    ///   - ended: called once.
    init(
        environment: Environment, authority: BoundAuthority, account: ClientAccount?,
        handover: DownstreamHandover, request: AccessRequest?, passage: Passage = Passage(),
        ended: @escaping (Outcome) -> Void
    ) {
        self.ended = ended
        timeouts = environment.policy.timeouts
        super.init(
            environment: environment, authority: authority, account: account,
            handover: handover, request: request, passage: passage)
    }

    /// Starts the tunnel; the loop keeps it alive until it has ended.
    func start() {
        let time = environment.policy.timeouts.headMilliseconds
        givesUpAt = environment.loop.now + time
        begin(within: min(time, Self.silenceMilliseconds))
    }

    // MARK: Events

    override func serverReady(_ readiness: Readiness) {
        let hasEnded = !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed])
        guard step == .listening, readiness.mayRead || hasEnded else { return }
        if let server, !hasEnded, server.isSilent(spending: &budget, in: environment) { return }
        connect()
    }

    override func deadlineReached() {
        switch step {
        case .over: return
        case .verifying:
            environment.metrics.add(.poolWaitTimeouts)
            refuse(.gateway(.poolWaitTimeout))
        // The connect operation has its own deadline.
        case .joining: return
        case .listening:
            let remainingTime = givesUpAt - environment.loop.now
            guard remainingTime > 0 else {
                environment.metrics.add(.clientHandshakesTimeout)
                return close(nil)
            }
            environment.loop.setDeadline(self, after: remainingTime)
            connect()
        }
    }

    /// Writes the response, and reads until the client's protocol is known.
    override func proceed() {
        guard step == .listening else { return }
        budget.renew(environment.loop)
        guard flush() else { return }
        while step == .listening {
            switch FirstBytes(input?.readable) {
            case .unknown: guard readClient() != nil else { return }
            case .tls: verify()
            case .other:
                step = .joining
                connect()
            }
        }
    }

    // MARK: TLS

    private func verify() {
        dropServer()
        step = .verifying
        let policy = environment.policy
        guard policy.intercepts(authority, by: settings(under: policy)),
            let origin = environment.origin(ofTunnelTo: authority, for: request, policy)
        else { return close(.gateway(.superseded)) }
        if let refusal = origin.refusal { return refuse(refusal) }
        let verification = OriginVerification(
            environment: environment, origin: origin, client: clientNetwork, passage: passage
        ) { [weak self] result in
            guard let self, step == .verifying else { return }
            endOpening()
            switch result {
            case .success(let server):
                // What the client is shown may have changed without a change to trust.
                let policy = environment.policy
                let rule = settings(under: policy)
                guard let interception = policy.interception(for: authority, by: rule) else {
                    return close(.gateway(.superseded))
                }
                end(.intercepted(handOver(), interception, server))
            case .failure(let failure):
                // There was a reload meanwhile.
                if case .gateway(.superseded) = failure.error { return verify() }
                refuse(failure.error, failure.attempts)
            }
        }
        opening = verification
        environment.loop.setDeadline(
            self, after: origin.timeouts.connectionWaitMilliseconds + origin.waysMilliseconds)
        verification.start()
    }

    /// Has the client notified by an alert, because it has already received 200.
    private func refuse(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        let policy = environment.policy
        guard
            let interception = policy.interception(
                for: authority, by: settings(under: policy))
        else { return close(fault, attempts) }
        endOpening()
        end(.refused(handOver(), interception, StreamError(fault, attempts)))
    }

    // MARK: Anything else

    /// Connects to the server in clear text, under the current rules for a tunnel.
    private func connect() {
        let policy = environment.policy
        // There may have been a reload since the response, and since the server was connected.
        let rule = settings(under: policy)
        guard policy.mayPass(authority, by: rule) else { return close(.access(.tunnelRefused)) }
        let target = policy.target(
            host: authority.host, port: authority.port, by: .tunnel, rule)
        if let refusal = target.refusal { return close(refusal) }
        if server != nil {
            if trustGeneration == policy.trustGeneration {
                return pass(step == .joining ? .notTLS : .serverFirst)
            }
            dropServer()
        }
        guard opening == nil else { return }
        trustGeneration = policy.trustGeneration
        timeouts = policy.timeouts(entryIndex: target.entryIndex)
        let reachability = policy.reachability(host: authority.host, port: authority.port)
        let ways = policy.ways(
            host: authority.host, port: authority.port, entryIndex: target.entryIndex,
            by: policy.ruleWays(of: request, to: authority))
        let operation = WayConnection(
            environment: environment,
            subject: WayConnection.Subject(
                authority: authority, policy: policy, match: target.match,
                stepMilliseconds: timeouts.connectMilliseconds, client: clientNetwork,
                passage: passage, takesEarlyData: true, rules: policy.destinationRules),
            by: ways
        ) { [weak self] result in
            guard let self, step == .listening || step == .joining else {
                if case .success(let made) = result { made.transport.close() }
                return
            }
            endOpening()
            switch result {
            case .success(let made):
                if made.parent == nil { environment.note(reachability, nil, for: clientNetwork) }
                // A server that has spoken already is not listened for.
                if adopt(made), step == .joining || made.leftover != nil { connect() }
            case .failure(let failure):
                if ways == nil {
                    environment.note(reachability, failure.error, for: clientNetwork)
                }
                close(failure.error, failure.attempts)
            }
        }
        opening = operation
        operation.start()
    }

    private func pass(_ pass: InterceptionPass) {
        guard let server = releaseServer() else { return }
        end(.passed(handOver(), to: server, timeouts, pass))
    }

    // MARK: The end

    override func hasClosed(_ fault: ExchangeError?, _ attempts: FailedAttempts?) {
        end(.ended(fault.map { StreamError($0, attempts) }))
    }

    private func end(_ outcome: Outcome) {
        step = .over
        let ended = ended
        self.ended = nil
        ended?(outcome)
    }
}
