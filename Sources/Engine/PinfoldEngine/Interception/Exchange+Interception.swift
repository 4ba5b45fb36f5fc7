import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

// A CONNECT whose tunnel ends in the gateway: it is treated like a request for the host over TLS,
// and answered once the server has been verified, so that no client is shown a good certificate in
// the name of a bad server.
extension Exchange {
    /// Continues with a CONNECT for which `tunnelHandling` is interception.
    func intercept(
        _ authority: BoundAuthority, _ name: ReferenceIdentifier, mayPass: Bool,
        _ policy: PolicySnapshot
    ) {
        guard
            let origin = environment.origin(
                ofTunnelTo: authority, for: accessRequest(scope: .authority), policy)
        else { return reply(with: .request(.malformedAuthority), closing: true) }
        guard isAdmitted(), goesOn(after: .decided(.open)) else { return }
        if mayPass {
            answerUndecided(authority, name)
        } else {
            verify(origin, authority, name)
        }
    }

    private func verify(
        _ origin: Origin, _ authority: BoundAuthority, _ name: ReferenceIdentifier
    ) {
        forwarding.go(to: origin)
        var tried: OriginVerification?
        let verification = OriginVerification(
            environment: environment, origin: origin, client: clientNetwork,
            passage: origin.ways == nil ? Passage() : passage
        ) { [weak self] result in
            guard let self, case .opening = state.step else { return }
            _ = tunnel?.takeOpening()
            if let parent = tried?.parent { remarks.goes(through: parent) }
            if let tried { waits.add(tried.phases(now: Clock.monotonicMicroseconds())) }
            tried = nil
            if token != .none { environment.loop.setDeadline(self, after: nil) }
            switch result {
            case .failure(let failure):
                if case .gateway(.superseded) = failure.error {
                    return verifyAgain(authority, name)
                }
                fail(failure.error, nil, failure.attempts)
            case .success(let server):
                // What the client is shown may have changed without a change to trust.
                let policy = environment.policy
                let rule = tunnelSettings(to: authority, policy)
                guard let interception = policy.interception(for: authority, by: rule) else {
                    return fail(.gateway(.superseded))
                }
                report.connected(to: server.endpoint, isReused: server.isReused)
                if environment.reportsExchanges { report.spoke(server.tlsVersion) }
                take(authority, name, interception, server)
            }
        }
        tried = verification
        tunnel?.wait(for: verification)
        verification.start()
        // Still waiting: like an exchange's, the wait has its own limit.
        if case .opening = state.step, tunnel?.opening === verification, register() {
            environment.loop.setDeadline(
                self,
                after: origin.timeouts.connectionWaitMilliseconds + origin.waysMilliseconds)
        }
    }

    /// There was a reload meanwhile: continues under the current configuration.
    private func verifyAgain(_ authority: BoundAuthority, _ name: ReferenceIdentifier) {
        let policy = environment.policy
        let rule = tunnelSettings(to: authority, policy)
        guard policy.interception(for: authority, by: rule) != nil,
            let origin = environment.origin(
                ofTunnelTo: authority, for: accessRequest(scope: .authority), policy)
        else { return fail(.gateway(.superseded)) }
        report.routed(origin.route)
        if let refusal = origin.refusal { return fail(refusal) }
        verify(origin, authority, name)
    }

    /// Answers, and hands the client's connection to the host.
    private func take(
        _ authority: BoundAuthority, _ name: ReferenceIdentifier,
        _ interception: InterceptionPolicy, _ server: OriginVerification.Server
    ) {
        guard let client, let ingress, let peer, goesOn(after: .relayed) else { return }
        report.answered(200)
        let tunnel = InterceptedTunnel(
            authority: authority, name: name, ingress: ingress, peer: peer, identity: identity,
            request: accessRequest(scope: .authority), account: client.account,
            hostLabel: report.hostLabel, interception: interception,
            server: server.verified)
        let handover = client.handOver(after: makeTunnelHead(on: client), isUpgrade: false)
        self.client = nil
        give(handover, to: tunnel)
    }

    /// Ends as a CONNECT whose tunnel the host has taken over.
    func give(_ handover: DownstreamHandover?, to tunnel: InterceptedTunnel) {
        let host = environment.host
        self.tunnel?.intercept()
        environment.metrics.add(.tunnelsIntercepted)
        if case .refused = tunnel.server { count(.refused) } else { count(.intercepted) }
        endSilently()
        if let handover { host?.takeOver(tunnel, handover) }
    }
}
