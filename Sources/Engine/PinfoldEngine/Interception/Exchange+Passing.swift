import EventLoop
import PinfoldMetrics
import PinfoldTLS

// A CONNECT to an intercepted host whose tunnel may nevertheless be relayed.
extension Exchange {
    /// Whether this client is not shown a certificate for the host because it keeps rejecting them.
    func isGivenUp(_ authority: BoundAuthority, under policy: PolicySnapshot) -> Bool {
        guard let clientNetwork, let interception = policy.interception else { return false }
        return interception.rejections.isGivenUp(
            clientNetwork, host: authority.host, at: environment.loop.monotonicNow)
    }

    /// Answers before it is known whether the client speaks TLS: a server that does not speak TLS
    /// must not be sent a handshake.
    func answerUndecided(_ authority: BoundAuthority, _ name: ReferenceIdentifier) {
        guard let client, let ingress, let peer, goesOn(after: .relayed) else { return }
        let account = client.account
        report.answered(200)
        let handover = client.handOver(after: makeTunnelHead(on: client), isUpgrade: false)
        self.client = nil
        guard let handover else { return endSilently() }
        keepOnlyTheHead()
        let tunnel = { [self] (interception: InterceptionPolicy, server: TunnelServer) in
            InterceptedTunnel(
                authority: authority, name: name, ingress: ingress, peer: peer,
                identity: identity, request: accessRequest(scope: .authority),
                account: account, hostLabel: report.hostLabel,
                interception: interception, server: server)
        }
        let generations = environment.policy.generations
        var running: UndecidedTunnel?
        let undecided = UndecidedTunnel(
            environment: environment, authority: authority, account: account, handover: handover,
            request: accessRequest(scope: .authority), passage: passageByWays(to: authority)
        ) { [self] outcome in
            if let running { waits.add(running.phases) }
            running = nil
            switch outcome {
            case .intercepted(let handover, let interception, let server):
                report.connected(to: server.endpoint, isReused: server.isReused)
                if environment.reportsExchanges { report.spoke(server.tlsVersion) }
                give(handover, to: tunnel(interception, server.verified))
            case .refused(let handover, let interception, let failure):
                note(failure.error, failure.attempts)
                give(handover, to: tunnel(interception, .refused))
            case .passed(let handover, let server, let timeouts, let pass):
                self.tunnel?.pass(because: pass)
                report.connected(to: server.endpoint)
                if let parent = server.parent { remarks.goes(through: parent) }
                environment.metrics.add(.tunnelsOpened)
                count(.passed)
                environment.metrics.add(.tunnelPassed(for: pass))
                join(
                    handover,
                    UpstreamHandover(transport: server.transport, leftover: server.leftover),
                    timeouts,
                    TunnelBasis(
                        authority, by: .tunnel, from: peer, as: identity,
                        request: accessRequest(scope: .authority), at: server.endpoint,
                        through: server.parent, proof: .none, under: environment.policy,
                        since: generations))
            case .ended(let failure):
                if let failure { note(failure.error, failure.attempts) }
                endSilently()
            }
        }
        running = undecided
        self.tunnel?.hand(to: undecided)
        undecided.start()
    }

    /// Records a failure after the answer, for the logs and the metrics.
    func note(_ fault: ExchangeError, _ attempts: FailedAttempts? = nil) {
        remarks.failed(fault)
        remarks.tried(attempts)
        environment.log(fault, of: self)
    }
}

extension WorkerCounter {
    static func tunnelPassed(for pass: InterceptionPass) -> Self {
        switch pass {
        case .notTLS: .tunnelsPassedNotTLS
        case .serverFirst: .tunnelsPassedServerFirst
        case .rejected: .tunnelsPassedRejected
        }
    }
}
