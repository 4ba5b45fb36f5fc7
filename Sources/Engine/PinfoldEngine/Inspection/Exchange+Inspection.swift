import Clocks
import EventLoop
import HTTPCore
import PinfoldTLS

// A CONNECT whose tunnel is inspected: it is answered, and continues once its server has proved its
// identity. The exchange stays open, because the access log's line for the CONNECT has the result.
extension Exchange {
    /// Answers the CONNECT, and has the tunnel inspected.
    /// - Parameter policy: the policy under which the server was connected to.
    func inspect(
        _ authority: BoundAuthority, _ server: EstablishedConnection, _ policy: PolicySnapshot
    ) {
        guard let client, let ingress, let peer, goesOn(after: .relayed) else {
            return server.transport.close()
        }
        let account = client.account
        report.answered(200)
        environment.metrics.add(.tunnelsOpened)
        let handover = client.handOver(after: makeTunnelHead(on: client), isUpgrade: false)
        self.client = nil
        guard let handover else {
            server.transport.close()
            return endSilently()
        }
        keepOnlyTheHead()
        var running: InspectedTunnel?
        let tunnel = InspectedTunnel(
            environment: environment, authority: authority, account: account,
            handover: handover, server: server, policy: policy,
            request: accessRequest(scope: .authority), passage: passageByWays(to: authority)
        ) { [self] outcome in
            var basis: TunnelBasis?
            if let running {
                basis = TunnelBasis(
                    authority, by: .tunnel, from: peer, as: identity,
                    request: accessRequest(scope: .authority), at: server.endpoint,
                    through: server.parent,
                    proof: running.inspection == .probed ? .probed : .verified,
                    under: running.policy, since: policy.generations)
                // Until then it is the client that is waited for.
                if let begun = running.helloSent {
                    waits.add(.tls, UInt64(max(0, Clock.monotonicMicroseconds() - begun)))
                }
                report.spoke(running.version)
                self.tunnel?.inspected(running.inspection)
            }
            running = nil
            switch outcome {
            case .relayed(let handover, let transport):
                if let result = self.tunnel?.inspection?.result { count(result) }
                if let pass = self.tunnel?.interceptionPass {
                    environment.metrics.add(.tunnelPassed(for: pass))
                }
                join(
                    handover, UpstreamHandover(transport: transport),
                    environment.policy.timeouts(for: authority), basis)
            case .intercepted(let handover, let interception, let name, let server):
                report.connected(to: server.endpoint, isReused: server.isReused)
                report.spoke(server.tlsVersion)
                give(
                    handover,
                    to: InterceptedTunnel(
                        authority: authority, name: name, ingress: ingress, peer: peer,
                        identity: identity, request: accessRequest(scope: .authority),
                        account: account, hostLabel: report.hostLabel,
                        interception: interception,
                        server: server.verified))
            case .ended(let fault):
                if fault == nil { self.tunnel?.inspected(nil) }
                if let fault { note(fault) }
                endSilently()
            }
        }
        running = tunnel
        self.tunnel?.hand(to: tunnel)
        tunnel.start()
    }
}
