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
        /// A reverse route with several servers.
        case balanced(UpstreamSet)
        /// A SOCKS 5 proxy (RFC 1928): requests are CONNECT only.
        case socks5
        /// Connections to other addresses, which a rule of the firewall leads here.
        case transparent(TransparentConfiguration)

        /// Whether clients name the destinations of their requests.
        package var isForward: Bool {
            switch self {
            case .forward, .socks5, .transparent: true
            case .reverse, .balanced: false
            }
        }

        /// Whether its clients name the destinations of requests in clear text, and not of tunnels
        /// only.
        package var takesRequests: Bool {
            switch self {
            case .forward, .transparent: true
            case .socks5, .reverse, .balanced: false
            }
        }

        /// Whether its clients do not know that they speak to a gateway.
        package var isTransparent: Bool {
            if case .transparent = self { true } else { false }
        }
    }

    /// The name in logs and metric labels, unique among the listeners; letters, digits, `.`, `_`
    /// and `-`, at most 64 bytes.
    package var name: String
    /// The local address and port; with port 0 the system chooses one.
    package var address: Endpoint
    /// The sockets that it takes over in place of opening its own; `address` is then that of the
    /// first. `nil` if it opens its own.
    package var passed: PassedAddress?
    /// The Unix socket that it listens on in place of an address; `nil` for most.
    package var unix: UnixSocketPath?
    /// The kind of listener.
    package var kind: Kind
    /// The information about the client that a reverse listener forwards to its upstream.
    package var forwarding = ForwardingConfiguration()
    /// The TLS settings for its clients; `nil` for clear text.
    package var tls: ListenerTLS?
    /// Whether its clients may speak HTTP/2.
    package var http2 = ClientHTTP2.auto
    /// How its one upstream is told who the client is; several have ``UpstreamSet/proxyProtocol``.
    package var sendsProxyProtocol = UpstreamProxyProtocol.none
    /// The senders of PROXY headers; `nil` if no connection begins with one.
    package var proxyProtocol: ProxyProtocolConfiguration?
    /// The methods by which its clients may prove who they are; empty if they need not.
    package var authentication: [AuthenticationMethod] = []

    /// Creates a listener with default forwarding fields.
    package init(name: String, address: Endpoint, kind: Kind) {
        self.name = name
        self.address = address
        self.kind = kind
    }
}

/// Who connects for others, and says so in a PROXY header (haproxy's proxy-protocol.txt).
package struct ProxyProtocolConfiguration: Sendable, Equatable {
    /// The networks from which every connection must begin with a header. From elsewhere none is
    /// accepted.
    package var from: [IPNetwork] = []

    /// Creates one without senders.
    package init() {}
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
        trustsSomebody && trustedProxies.contains { $0.contains(client: client) }
    }
}

/// How the connections to a reverse route's servers tell them who the client is, before any other
/// byte (haproxy's proxy-protocol.txt).
package enum UpstreamProxyProtocol: String, Sendable, Equatable, CaseIterable {
    /// They do not.
    case none
    /// A line of text (§2.1).
    case v1
    /// A binary header (§2.2).
    case v2
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
    /// The absolute path of the Unix socket that it listens on, in clear text; `nil` if it is
    /// reached by its host and port. These are then ``localName`` and 80.
    package var unixPath: String?

    /// The host by which requests, rules and entries of `hosts` know a server on a Unix socket, and
    /// its Host: it is on this machine (RFC 6761 §6.3).
    package static let localName = "localhost"

    /// Creates an origin from its parts.
    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// A server on a Unix socket.
    package init(unixPath: String) {
        self.init(scheme: .http, host: Self.localName, port: Scheme.http.defaultPort)
        self.unixPath = unixPath
    }

    /// Host and port as written in a URL or a Host field: an IPv6 address in brackets, and no port
    /// if it is the scheme's default.
    package var authority: String {
        let shown = HostText.bracketed(host)
        return port == scheme.defaultPort ? shown : "\(shown):\(port)"
    }

    /// The URL, without a path; for a Unix socket `unix:` and where it is.
    package var url: String {
        unixPath.map { UnixSocketPath.scheme + $0 } ?? "\(scheme.rawValue)://\(authority)"
    }
}
