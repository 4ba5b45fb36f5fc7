import PinfoldConfiguration
import PinfoldTLS

/// How a CONNECT is handled, as far as the host and port that it names determine that.
package enum TunnelHandling: Sendable {
    case refused(ExchangeError)
    /// The tunnel's bytes are relayed without inspection.
    case relayed
    /// They are relayed once the server's handshake has been verified; for TLS 1.3 as the mode
    /// says.
    case inspected(TLS13TunnelMode)
    /// The tunnel ends in the gateway, which answers in this name; `mayPass`: traffic that is not
    /// TLS is relayed without inspection.
    case intercepted(ReferenceIdentifier, mayPass: Bool)
}

extension PolicySnapshot {
    /// Decides how a CONNECT is handled, both for exchanges and for explaining what would happen to
    /// one.
    ///
    /// - Parameters:
    ///   - rule: what the rule says that allows it.
    ///   - mayIntercept: whether there is an authority to issue certificates, and a host to take
    ///     over the tunnel.
    ///   - isGivenUp: whether the client is no longer shown certificates for the host; called only
    ///     if interception ends for such clients.
    package func tunnelHandling(
        to authority: BoundAuthority, by rule: TunnelSettings, mayIntercept: Bool,
        isGivenUp: () -> Bool
    ) -> TunnelHandling {
        guard configuration.access.connectPorts.contains(authority.port) else {
            return .refused(.connectPortRefused(authority.port))
        }
        let tunnel = target(host: authority.host, port: authority.port, by: .tunnel, rule)
        let inspection = configuration.inspection(entry: tunnel.entryIndex, by: rule)
        let isIntercepted =
            mayIntercept && configuration.intercepts(entry: tunnel.entryIndex, by: rule)
            && !(configuration.fallsBack(entry: tunnel.entryIndex, by: rule) && isGivenUp())
        guard isIntercepted else {
            if let refusal = tunnel.refusal { return .refused(refusal) }
            return inspection.map { .inspected($0) } ?? .relayed
        }
        // It is treated like a request for the host over TLS.
        let request = target(
            host: authority.host, port: authority.port, by: .request(isSecure: true))
        if let refusal = request.refusal { return .refused(refusal) }
        guard let name = ReferenceIdentifier(authority.host) else {
            return .refused(.access(.interceptionImpossible))
        }
        let mayPass = configuration.passesClearText(entry: tunnel.entryIndex, by: rule)
        if mayPass, let refusal = tunnel.refusal { return .refused(refusal) }
        return .intercepted(name, mayPass: mayPass)
    }
}
