import Addressing
import CertificateAuthority

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
    package let hostLabel: Int
    /// What the client's TLS is spoken with.
    package let interception: InterceptionPolicy
    /// What the server has proved itself with to the gateway.
    package let server: ServerCertificate?

    init(
        authority: BoundAuthority, name: ReferenceIdentifier, ingress: Ingress, peer: Endpoint,
        account: ClientAccount?, hostLabel: Int, interception: InterceptionPolicy,
        server: ServerCertificate?
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
