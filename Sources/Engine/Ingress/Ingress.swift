import Addressing
import Configuration
import HTTPCore
import Notation

/// The fixed upstream of a reverse listener.
package struct ReverseUpstream: Sendable, Hashable {
    package let host: String
    package let port: UInt16
    package let isSecure: Bool
    /// What it is told about the client's side.
    package var forwarding = ForwardingConfiguration()

    package init(
        host: String, port: UInt16, isSecure: Bool,
        forwarding: ForwardingConfiguration = ForwardingConfiguration()
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.forwarding = forwarding
    }
}

/// Where requests come in, and what that says about them: all that an exchange knows of it.
///
/// A listener is one source of ingresses; a tunnel whose content the gateway reads is another.
package final class Ingress {
    /// What its requests are for.
    package enum Role: Equatable {
        /// The destinations that they name.
        case forward
        case reverse(ReverseUpstream)
        /// The one authority that a tunnel was opened to, by TLS.
        case bound(BoundAuthority)
        /// The gateway itself.
        case admin
    }

    package let name: String
    /// The index of its name in metrics and the access log (`RouteLabels`).
    package let label: Int
    /// The address that clients connect to.
    package let endpoint: Endpoint
    package let role: Role
    /// Requests to the administration are not traffic.
    package let isCounted: Bool

    package init(name: String, label: Int, endpoint: Endpoint, role: Role) {
        self.name = name
        self.label = label
        self.endpoint = endpoint
        self.role = role
        isCounted = role != .admin
    }
}

/// The authority that all requests of a tunnel are for (RFC 9110 §7.4).
package struct BoundAuthority: Equatable {
    /// Lower case, an address without brackets.
    package let host: String
    package let port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// Whether an authority is this one; `port` is nil where it names none.
    package func isNamed(by host: Span<UInt8>, port: UInt16?) -> Bool {
        host.equalsIgnoringCase(self.host.utf8.span)
            && (port ?? Scheme.https.defaultPort) == self.port
    }
}
