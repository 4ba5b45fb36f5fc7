import HTTPCore
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
    package let account: ClientAccount?
    /// The index of the name of the host entry that applies (`RouteLabels`).
    package let hostLabel: LabelIndex
    /// The means of TLS with the client.
    package let interception: InterceptionPolicy
    /// The result of verifying the server.
    package let server: TunnelServer

    init(
        authority: BoundAuthority, name: ReferenceIdentifier, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?, hostLabel: LabelIndex, interception: InterceptionPolicy,
        server: TunnelServer
    ) {
        self.authority = authority
        self.name = name
        self.ingress = ingress
        self.peer = peer
        self.account = account
        self.hostLabel = hostLabel
        self.interception = interception
        self.server = server
    }
}

/// The result of verifying the server of a tunnel.
package enum TunnelServer {
    /// It is the right one, as proved by this certificate.
    case verified(ServerCertificate?)
    /// It is not, or cannot be reached: the client, which was answered before that was known, is
    /// shown no certificate.
    case refused
}
