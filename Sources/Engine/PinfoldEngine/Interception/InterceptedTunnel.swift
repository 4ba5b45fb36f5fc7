import HTTPCore
import PinfoldMetrics
import PinfoldTLS

/// A tunnel that ends in the gateway: what a CONNECT asked for and was judged by.
package final class InterceptedTunnel {
    /// What all its requests are for.
    package let authority: BoundAuthority
    /// The same as certificates name it.
    package let name: ReferenceIdentifier
    /// Where the CONNECT came in.
    package let ingress: Ingress
    package let peer: Endpoint
    package let account: ClientAccount?
    /// The index of the name of the host entry that applies (`RouteLabels`).
    package let hostLabel: LabelIndex
    /// What the client's TLS is spoken with.
    package let interception: InterceptionPolicy
    /// What came of verifying the server.
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

/// What came of verifying the server of a tunnel.
package enum TunnelServer {
    /// It is who it is to be, and has proved so with this certificate.
    case verified(ServerCertificate?)
    /// It is not, or cannot be reached: the client, which has been answered before that was known,
    /// is shown no certificate.
    case refused
}
