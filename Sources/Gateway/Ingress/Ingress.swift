import Addressing
import Configuration
import HTTPCore
import Notation

/// The fixed upstream of a reverse listener.
package struct ReverseUpstream: Sendable, Hashable {
    let host: String
    let port: UInt16
    let isSecure: Bool
    /// What it is told about the client's side.
    var forwarding = ForwardingConfiguration()
}

/// Where requests come in, and what that says about them: all that an exchange knows of it.
///
/// A listener is one source of ingresses; a tunnel whose content the gateway reads is another.
final class Ingress {
    /// What its requests are for.
    enum Role: Equatable {
        /// The destinations that they name.
        case forward
        case reverse(ReverseUpstream)
        /// The one authority that a tunnel was opened to, by TLS.
        case bound(BoundAuthority)
        /// The gateway itself.
        case admin
    }

    let name: String
    /// The index of its name in metrics and the access log (`RouteLabels`).
    let label: Int
    /// The address that clients connect to.
    let endpoint: Endpoint
    let role: Role
    /// Requests to the administration are not traffic.
    let isCounted: Bool

    init(name: String, label: Int, endpoint: Endpoint, role: Role) {
        self.name = name
        self.label = label
        self.endpoint = endpoint
        self.role = role
        isCounted = role != .admin
    }
}

/// The authority that all requests of a tunnel are for (RFC 9110 §7.4).
struct BoundAuthority: Equatable {
    /// Lower case, an address without brackets.
    let host: String
    let port: UInt16

    /// Whether an authority is this one; `port` is nil where it names none.
    func isNamed(by host: Span<UInt8>, port: UInt16?) -> Bool {
        host.equalsIgnoringCase(self.host.utf8.span)
            && (port ?? Scheme.https.defaultPort) == self.port
    }
}
