import Authentication
import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

/// A tunnel that ends in the gateway: what a CONNECT asked for, and the basis on which it was
/// allowed.
package final class InterceptedTunnel {
    /// The authority of all its requests.
    package let authority: BoundAuthority
    /// The same in the form used by certificates.
    package let name: ReferenceIdentifier
    /// The ingress of the CONNECT.
    package let ingress: Ingress
    package let peer: Endpoint
    /// Who asked for it: the user of all its requests.
    package let identity: Identity?
    /// What asked for it, for rules; `nil` if none apply.
    package let request: AccessRequest?
    package let account: ClientAccount?
    /// The index of the name of the host entry that applies (`RouteLabels`).
    package let hostLabel: LabelIndex
    /// The means of TLS with the client.
    package let interception: InterceptionPolicy
    /// The result of verifying the server.
    package let server: TunnelServer

    init(
        authority: BoundAuthority, name: ReferenceIdentifier, ingress: Ingress, peer: Endpoint,
        identity: Identity?, request: AccessRequest?, account: ClientAccount?,
        hostLabel: LabelIndex, interception: InterceptionPolicy, server: TunnelServer
    ) {
        self.authority = authority
        self.name = name
        self.ingress = ingress
        self.peer = peer
        self.identity = identity
        self.request = request
        self.account = account
        self.hostLabel = hostLabel
        self.interception = interception
        self.server = server
    }
}

extension InterceptedTunnel {
    /// What is selected from with the client: HTTP/2 exactly if the server agreed on it.
    package var offer: ProtocolOffer {
        switch server {
        case .verified(_, .http2): .either
        case .verified(_, .http1), .refused: .http1
        }
    }
}

extension PolicySnapshot {
    /// How the rule that allows a tunnel that ends in the gateway has it handled.
    package func settings(of tunnel: InterceptedTunnel) -> TunnelSettings {
        tunnelSettings(for: tunnel.request, to: tunnel.authority)
    }
}

/// The result of verifying the server of a tunnel.
package enum TunnelServer {
    /// It is the right one, as proved by this certificate. Its connection carries what the client
    /// is offered.
    case verified(ServerCertificate?, HTTPCarrier)
    /// It is not, or cannot be reached: the client, which was answered before that was known, is
    /// shown no certificate.
    case refused
}
