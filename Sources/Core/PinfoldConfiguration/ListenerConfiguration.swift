import HTTPCore
import Trust

/// One listening socket for clients.
package struct ListenerConfiguration: Sendable, Equatable {
    /// What a listener does with its requests.
    package enum Kind: Sendable, Equatable {
        /// A forward proxy: absolute-form targets and CONNECT.
        case forward
        /// A reverse route: origin-form targets, all of them sent to one upstream. The upstream is
        /// the operator's choice, so `access.destinations` does not apply to it.
        case reverse(UpstreamOrigin)
    }

    /// The name in logs and metric labels, unique among the listeners; letters, digits, `.`, `_`
    /// and `-`, at most 64 bytes.
    package var name: String
    /// The local address and port; port 0 lets the system choose.
    package var address: Endpoint
    /// What it does.
    package var kind: Kind
    /// What a reverse listener tells its upstream about the client's side.
    package var forwarding = ForwardingConfiguration()
    /// How clients speak TLS to it; nil: they speak clear text.
    package var tls: ListenerTLS?

    /// A listener with the default fields for its upstream.
    package init(name: String, address: Endpoint, kind: Kind) {
        self.name = name
        self.address = address
        self.kind = kind
    }
}

/// What a reverse route tells its upstream about the client's side.
package struct ForwardingConfiguration: Sendable, Hashable {
    /// What becomes of X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Proto and Forwarded
    /// (RFC 7239).
    package enum Mode: String, Sendable, Hashable, CaseIterable {
        /// The gateway's own values alone reach the upstream.
        case set
        /// The same; but what a trusted proxy sent is kept, and added to.
        case append
        /// None of these fields reaches the upstream.
        case none
    }

    /// What becomes of the fields.
    package var mode = Mode.set
    /// Whether the upstream gets the client's Host instead of its own name.
    package var keepsHost = false
    /// The clients whose fields are believed, with `append`.
    package var trustedProxies: [IPNetwork] = []
    /// Whether the upstream is told that clients spoke TLS: that is the listener's to say.
    package var clientsSpeakTLS = false

    /// The default: the gateway's own fields and the upstream's name.
    package init() {}

    /// Whether anybody's fields are believed.
    package var trustsSomebody: Bool { mode == .append && !trustedProxies.isEmpty }

    /// Whether the fields of this client are believed.
    package func trusts(_ client: IPAddress) -> Bool {
        trustsSomebody && trustedProxies.contains { $0.contains(client) }
    }
}

/// The fixed upstream of a reverse route.
package struct UpstreamOrigin: Sendable, Equatable {
    /// The scheme spoken to the upstream.
    package enum Scheme: String, Sendable, Equatable {
        case http
        case https

        /// The port when the URL has none (RFC 9110 §4.2).
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
    /// The port, filled in from the scheme when the URL has none.
    package var port: UInt16

    /// An origin by its parts, as they are kept.
    package init(scheme: Scheme, host: String, port: UInt16) {
        self.scheme = scheme
        self.host = host
        self.port = port
    }

    /// Host and port as they stand in a URL or a Host field: brackets around an IPv6 address, no
    /// port when it is the scheme's own.
    package var authority: String {
        let shown = HostText.bracketed(host)
        return port == scheme.defaultPort ? shown : "\(shown):\(port)"
    }

    /// The URL, without a path.
    package var url: String { "\(scheme.rawValue)://\(authority)" }
}

/// The administrative listener.
package struct AdminConfiguration: Sendable, Equatable {
    /// The local address and port; port 0 lets the system choose.
    package var address = Endpoint(address: .loopbackV4, port: 9090)
    /// The bearer token that opens what is not open to everyone, or nil without one.
    package var token: AdminToken?
    /// Who may read the metrics and the index page; health and readiness are open to everyone.
    package var metrics = Metrics.open
    /// The names that requests may carry besides the loopback names and the address itself.
    package var hosts: [HostPattern] = []

    /// The defaults.
    package init() {}

    /// Who may read the metrics.
    package enum Metrics: String, Sendable, Equatable, CaseIterable {
        /// Whoever reaches the address.
        case open
        /// Who presents the token.
        case token
    }
}

/// The administrative token and the file it was read from.
package struct AdminToken: Sendable, Equatable {
    /// The absolute path of the file.
    package var path: String
    /// The token: the file's bytes without white space at either end; never empty.
    package var bytes: [UInt8]

    /// A token that has been read.
    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }
}

/// Who may use the gateway and what it may connect to.
package struct AccessConfiguration: Sendable, Equatable {
    /// The networks whose clients are served; all others are refused.
    package var clients = Self.loopback
    /// The ports that CONNECT may name.
    package var connectPorts = ConnectPorts.ports([443])
    /// Destinations to allow although their address is loopback, link-local, private or metadata.
    package var allow = DestinationList()
    /// Destinations to refuse whatever else is said: deny wins over allow.
    package var deny = DestinationList()

    /// The defaults.
    package init() {}

    /// 127.0.0.0/8 and ::1/128.
    static let loopback = ["127.0.0.0/8", "::1/128"].compactMap { IPNetwork($0) }

    /// The networks of both lists, as the rules that each resolved address is checked against.
    package var destinationRules: DestinationRules {
        DestinationRules(allow: allow.networks, deny: deny.networks)
    }

    /// What the host patterns of both lists say of the host that a request names.
    /// - Parameters:
    ///   - host: The host name, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func hostMatch(host: Span<UInt8>, port: UInt16) -> DestinationRules.HostMatch {
        DestinationRules.HostMatch(
            allowed: allow.contains(host: host, port: port),
            denied: deny.contains(host: host, port: port),
            isAddress: IPAddress(literal: host) != nil)
    }

    /// Whether a client with this address is served.
    package func serves(client: IPAddress) -> Bool {
        clients.contains { $0.contains(client) }
    }
}

/// The ports that CONNECT may name.
package enum ConnectPorts: Sendable, Equatable {
    /// Every port.
    case any
    /// These ports, in the order written; an empty list refuses every CONNECT.
    case ports([UInt16])

    /// Whether CONNECT may name this port.
    package func contains(_ port: UInt16) -> Bool {
        switch self {
        case .any: true
        case .ports(let ports): ports.contains(port)
        }
    }
}
