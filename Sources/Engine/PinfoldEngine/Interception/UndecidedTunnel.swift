import EventLoop
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

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
final class UndecidedTunnel: EventHandler, UnfinishedInput {
    /// How the tunnel continues.
    enum Outcome {
        /// The server is the right one.
        case intercepted(DownstreamHandover, InterceptionPolicy, OriginVerification.Server)
        /// The client speaks TLS, but must not be shown a certificate for the server.
        case refused(DownstreamHandover, InterceptionPolicy, StreamError)
        /// Relay what both sides send.
        case passed(
            DownstreamHandover, to: Transport, Endpoint, TimeoutsConfiguration, InterceptionPass)
        /// It has ended and is closed.
        case ended(StreamError?)
    }

    private enum Step { case listening, verifying, joining, over }

    /// The server's connection while the client is silent.
    private final class Server: EventHandler {
        let transport: Transport
        let endpoint: Endpoint
        /// The generation of the rules under which it was connected.
        let trustGeneration: UInt64
        private unowned let tunnel: UndecidedTunnel

        init(
            _ made: EstablishedConnection, of tunnel: UndecidedTunnel, under trustGeneration: UInt64
        ) {
            transport = made.transport
            endpoint = made.endpoint
            self.tunnel = tunnel
            self.trustGeneration = trustGeneration
        }

        override func ready(_ readiness: Readiness) {
            let hasEnded = !readiness.isDisjoint(with: [.peerFinished, .hungUp, .failed])
            if readiness.mayRead || hasEnded { tunnel.serverSentData() }
        }
    }

    /// After how many milliseconds of silence from the client the server is connected to, which may
    /// be the side that sends first. A client that speaks TLS after that is still intercepted.
    static let silenceMilliseconds: Int64 = 500

    let environment: Environment
    private let authority: BoundAuthority
    let account: ClientAccount?
    private var clientNetwork: IPNetwork? { account?.network }
    var unfinishedBytes = 0
    var stalledSince: Int64 = 0
    private let handover: DownstreamHandover
    private var ended: ((Outcome) -> Void)?
    private var step = Step.listening
    private var input: Buffer?
    private var output: OutputQueue
    private var budget = TurnBudget()
    private var mayRead = true
    private var readWantsWrite = false
    /// When a silent client is given up, in the loop's milliseconds.
    private var givesUpAt: Int64 = 0
    private var opening: (any TunnelOpening)?
    private var server: Server?
    private var isConnecting = false
    /// The timeouts of the configuration under which the server is contacted in clear text.
    private var timeouts: TimeoutsConfiguration

    /// - Parameters:
    ///   - handover: the client's connection, with the response to CONNECT queued.
    ///   - ended: called once.
    init(
        environment: Environment, authority: BoundAuthority, account: ClientAccount?,
        handover: DownstreamHandover, ended: @escaping (Outcome) -> Void
    ) {
        self.environment = environment
        self.authority = authority
        self.account = account
        self.handover = handover
        self.ended = ended
        input = handover.leftover
        output = handover.pending
        timeouts = environment.policy.timeouts
    }

    private var descriptor: Int32 { handover.transport.descriptor }

    /// Starts the tunnel; the loop keeps it alive until it has ended.
    func start() {
        do throws(Errno) {
            try environment.loop.add(self, descriptor: descriptor)
        } catch {
            return close(.connectFailed(error))
        }
        let time = environment.policy.timeouts.headMilliseconds
        givesUpAt = environment.loop.now + time
        environment.loop.setDeadline(self, after: min(time, Self.silenceMilliseconds))
        environment.hold(self, bytes: TLSServerConnection.handshakeBytes)
        environment.loop.afterTurn { [self] in proceed() }
    }

    // MARK: Events

    override func ready(_ readiness: Readiness) {
        if readiness.mayRead || readWantsWrite && readiness.mayWrite { mayRead = true }
        if !readiness.isDisjoint(with: [.hungUp, .failed]) { return close(nil) }
        proceed()
    }

    override func continueWork() { proceed() }

    override func deadlineReached() {
        switch step {
        case .over: return
        case .verifying:
            environment.metrics.add(.poolWaitTimeouts)
            refuse(.poolWaitTimeout)
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
    private func proceed() {
        guard step == .listening else { return }
        budget.renew(environment.loop)
        switch handover.transport.flush(&output, on: environment.loop, spending: &budget) {
        case .drained: break
        case .blocked: return
        case .turnIsOver: return environment.loop.requeue(self)
        case .failed: return close(nil)
        }
        while step == .listening {
            switch FirstBytes(input?.readable) {
            case .unknown: guard read() else { return }
            case .tls: verify()
            case .other:
                step = .joining
                connect()
            }
        }
    }

    /// Reads once; returns false if nothing was read.
    private func read() -> Bool {
        guard mayRead else { return false }
        let room = environment.loop.buffers.makeRoom(in: &input)
        switch handover.transport.read(into: room, spending: &budget) {
        case .bytes(let count, _):
            input?.end += count
            environment.metrics.add(.clientBytesReceived, UInt64(count))
            return true
        case .wouldBlock(let wantsWrite):
            mayRead = false
            readWantsWrite = wantsWrite
        case .turnIsOver: environment.loop.requeue(self)
        case .endOfStream, .truncated, .failed: close(nil)
        }
        return false
    }

    // MARK: TLS

    private func verify() {
        dropServer()
        step = .verifying
        let policy = environment.policy
        guard policy.intercepts(authority),
            let origin = environment.origins.origin(
                host: authority.host.utf8.span, port: authority.port, scheme: .https,
                policy: policy)
        else { return close(.superseded) }
        if let refusal = origin.refusal { return refuse(refusal) }
        let verification = OriginVerification(
            environment: environment, origin: origin, client: clientNetwork
        ) { [weak self] result in
            guard let self, step == .verifying else { return }
            opening = nil
            switch result {
            case .success(let server):
                // What the client is shown may have changed without a change to trust.
                guard let interception = environment.policy.interception(for: authority) else {
                    return close(.superseded)
                }
                end(.intercepted(release(), interception, server))
            case .failure(let failure):
                // There was a reload meanwhile.
                if case .superseded = failure.error { return verify() }
                refuse(failure.error, failure.attempts)
            }
        }
        opening = verification
        environment.loop.setDeadline(self, after: origin.timeouts.connectionWaitMilliseconds)
        verification.start()
    }

    /// Has the client notified by an alert, because it has already received 200.
    private func refuse(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        guard let interception = environment.policy.interception(for: authority) else {
            return close(fault, attempts)
        }
        opening?.cancel()
        opening = nil
        end(.refused(release(), interception, StreamError(fault, attempts)))
    }

    // MARK: Anything else

    /// Connects to the server in clear text, under the current rules for a tunnel.
    private func connect() {
        let policy = environment.policy
        // There may have been a reload since the response, and since the server was connected.
        guard policy.mayPass(authority) else { return close(.tunnelRefused) }
        let target = policy.target(host: authority.host, port: authority.port, by: .tunnel)
        if let refusal = target.refusal { return close(refusal) }
        if let server, server.trustGeneration == policy.trustGeneration {
            return pass(to: server, step == .joining ? .notTLS : .serverFirst)
        }
        if server != nil { dropServer() }
        guard !isConnecting else { return }
        isConnecting = true
        let trustGeneration = policy.trustGeneration
        timeouts = policy.timeouts(entryIndex: target.entryIndex)
        let reachability = policy.reachability(host: authority.host, port: authority.port)
        let operation = ConnectOperation(
            environment: environment, host: authority.host, port: authority.port,
            client: clientNetwork, rules: policy.destinationRules, hostMatch: target.match
        ) { [weak self] result in
            guard let self, step == .listening || step == .joining else {
                if case .success(let made) = result { made.transport.close() }
                return
            }
            opening = nil
            switch result {
            case .success(let made):
                environment.note(reachability, nil, for: clientNetwork)
                connected(Server(made, of: self, under: trustGeneration))
            case .failure(let failure):
                environment.note(reachability, failure.error, for: clientNetwork)
                close(failure.error, failure.attempts)
            }
        }
        opening = operation
        operation.start(timeoutMilliseconds: timeouts.connectMilliseconds)
    }

    private func connected(_ made: Server) {
        isConnecting = false
        do throws(Errno) {
            try environment.loop.add(made, descriptor: made.transport.descriptor)
        } catch {
            made.transport.close()
            return close(.connectFailed(error))
        }
        server = made
        if step == .joining { connect() }
    }

    private func serverSentData() {
        guard step == .listening, server != nil else { return }
        connect()
    }

    private func pass(to server: Server, _ pass: InterceptionPass) {
        if server.token != .none {
            environment.loop.remove(server, keepingOpen: server.transport.descriptor)
        }
        self.server = nil
        let timeouts = timeouts
        end(
            .passed(
                release(), to: server.transport, server.endpoint, timeouts, pass))
    }

    // MARK: The end

    /// The client's connection, for another owner.
    private func release() -> DownstreamHandover {
        environment.loop.remove(self, keepingOpen: descriptor)
        return DownstreamHandover(
            transport: handover.transport, leftover: input, pending: output,
            closed: handover.closed)
    }

    private func dropServer() {
        // A cancelled operation does not complete.
        opening?.cancel()
        opening = nil
        isConnecting = false
        guard let server else { return }
        self.server = nil
        environment.loop.remove(server)
        server.transport.close()
    }

    func cut() { close(nil) }

    func giveUp() { close(.headBuffersFull) }

    /// Closes both connections.
    func close(_ fault: ExchangeError?, _ attempts: FailedAttempts? = nil) {
        guard step != .over else { return }
        dropServer()
        environment.loop.remove(self)
        handover.transport.close()
        output.discard()
        handover.closed()
        end(.ended(fault.map { StreamError($0, attempts) }))
    }

    private func end(_ outcome: Outcome) {
        step = .over
        input = nil
        environment.release(self)
        let ended = ended
        self.ended = nil
        ended?(outcome)
    }
}
