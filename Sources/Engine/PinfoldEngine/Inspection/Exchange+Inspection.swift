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
        guard let client, let ingress, let peer else { return server.transport.close() }
        let account = client.account
        status = 200
        environment.metrics.add(.tunnelsOpened)
        let handover = client.handOver(after: makeTunnelHead(on: client), isUpgrade: false)
        handle(.relayed)
        self.client = nil
        guard let handover else {
            server.transport.close()
            return endSilently()
        }
        keepOnlyTheHead()
        var running: InspectedTunnel?
        let tunnel = InspectedTunnel(
            environment: environment, authority: authority, account: account,
            handover: handover, server: server, policy: policy
        ) { [self] outcome in
            var basis: TunnelBasis?
            if let running {
                basis = TunnelBasis(
                    authority, by: .tunnel, from: peer, at: server.endpoint,
                    proof: running.inspection == .probed ? .probed : .verified,
                    under: running.policy, since: policy.trustGeneration)
                upstreamVersion = running.version
                inspection = running.inspection
            }
            running = nil
            switch outcome {
            case .relayed(let handover, let transport):
                if let interceptionPass {
                    environment.metrics.add(.tunnelPassed(for: interceptionPass))
                }
                join(handover, transport, environment.policy.timeouts(for: authority), basis)
            case .intercepted(let handover, let interception, let name, let server):
                upstreamEndpoint = server.endpoint
                upstreamVersion = server.tlsVersion
                give(
                    handover,
                    to: InterceptedTunnel(
                        authority: authority, name: name, ingress: ingress, peer: peer,
                        account: account, hostLabel: hostLabel, interception: interception,
                        server: .verified(server.certificate)))
            case .ended(let fault):
                if fault == nil { inspection = nil }
                if let fault { note(fault) }
                endSilently()
            }
        }
        running = tunnel
        carrier = tunnel
        tunnel.start()
    }
}
