import Authentication
import HTTPCore

/// One listening socket for clients.
package struct ListenerConfiguration: Sendable, Equatable {
    /// What a listener does with its requests.
    package enum Kind: Sendable, Equatable {
        /// A forward proxy: absolute-form targets and CONNECT.
        case forward
        /// A reverse route: origin-form targets, all sent to one upstream. The upstream is the
        /// operator's choice, so `access.destinations` does not apply to it.
        case reverse(UpstreamOrigin)
    }

    /// The name in logs and metric labels, unique among the listeners; letters, digits, `.`, `_`
    /// and `-`, at most 64 bytes.
    package var name: String
    /// The local address and port; with port 0 the system chooses one.
    package var address: Endpoint
    /// The sockets that it takes over in place of opening its own; `address` is then that of the
    /// first. `nil` if it opens its own.
    package var passed: PassedAddress?
    /// The kind of listener.
    package var kind: Kind
    /// The information about the client that a reverse listener forwards to its upstream.
    package var forwarding = ForwardingConfiguration()
    /// The TLS settings for its clients; `nil` for clear text.
    package var tls: ListenerTLS?
    /// Whether its clients may speak HTTP/2.
    package var http2 = ClientHTTP2.auto
    /// The methods by which its clients may prove who they are; empty if they need not.
    package var authentication: [AuthenticationMethod] = []

    /// Creates a listener with default forwarding fields.
    package init(name: String, address: Endpoint, kind: Kind) {
        self.name = name
        self.address = address
        self.kind = kind
    }
}

/// Whether clients may speak HTTP/2.
package enum ClientHTTP2: String, Sendable, Equatable, CaseIterable {
    /// Those that want it: by ALPN with TLS, and in clear text by beginning with it (prior
    /// knowledge, RFC 9113 §3.3).
    case auto
    /// All speak HTTP/1.
    case off
}

/// The information about the client that a reverse route forwards to its upstream.
package struct ForwardingConfiguration: Sendable, Hashable {
    /// How X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto and Forwarded (RFC 7239) are
    /// handled.
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// Only the gateway's own values are sent to the upstream.
        case set
        /// The same, except that values sent by a trusted proxy are kept and appended to.
        case append
        /// None of these fields is sent to the upstream.
        case none
    }

    /// How the fields are handled.
    package var mode = Mode.set
    /// Whether the upstream receives the client's Host instead of its own name.
    package var keepsHost = false
    /// The clients whose fields are trusted, with `append`.
    package var trustedProxies: [IPNetwork] = []
    /// Whether requests tell the upstream that clients use TLS; the listener determines that.
    package var clientsSpeakTLS = false

    /// Creates the default: the gateway's own fields and the upstream's name.
    package init() {}

    /// Whether any client's fields are trusted.
    package var trustsSomebody: Bool { mode == .append && !trustedProxies.isEmpty }

    /// Whether this client's fields are trusted.
    package func trusts(_ client: IPAddress) -> Bool {
        trustsSomebody && trustedProxies.contains { $0.contains(client) }
    }
}

/// The fixed upstream of a reverse route.
package struct UpstreamOrigin: Sendable, Equatable {
    /// The scheme used with the upstream.
    package enum Scheme: String, Sendable, Equatable {
        case http
        case https

        /// The port if the URL has none (RFC 9110 §4.2).
        package var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            }
        }
    }

    /// Clear text or verified TLS.
    package var scheme: Scheme
    /// The host name in lower case, or an address without brackets.
    package var host: String
    /// The port; the scheme's default if the URL has none.
    package var port: UInt16

    /// Creates an origin from its parts.
    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Host and port as written in a URL or a Host field: an IPv6 address in brackets, and no port
    /// if it is the scheme's default.
    package var authority: String {
        let shown = HostText.bracketed(host)
        return port == scheme.defaultPort ? shown : "\(shown):\(port)"
    }

    /// The URL, without a path.
    package var url: String { "\(scheme.rawValue)://\(authority)" }
}
