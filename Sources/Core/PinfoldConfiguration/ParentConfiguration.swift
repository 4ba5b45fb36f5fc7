import HTTPCore
import Trust

/// Another proxy through which servers are reached: an entry of `parents`.
package struct ParentConfiguration: Sendable, Equatable {
    /// How the proxy is spoken to.
    package enum Scheme: String, Sendable, Equatable, CaseIterable {
        /// HTTP in clear text.
        case http
        /// HTTP over TLS with the proxy, which is verified like any server.
        case https
        /// SOCKS5; the gateway resolves names.
        case socks5
        /// SOCKS5; the proxy resolves names.
        case socks5h

        /// The port if the URL has none.
        package var defaultPort: UInt16 {
            switch self {
            case .http: 80
            case .https: 443
            case .socks5, .socks5h: 1080
            }
        }

        /// Whether it is an HTTP proxy.
        package var isHTTP: Bool { self == .http || self == .https }
    }

    /// Whose credentials the proxy is sent.
    package enum Authorization: String, Sendable, Equatable, CaseIterable {
        /// The entry's own, if it has any.
        case own
        /// Those that the client has sent for a proxy.
        case pass
    }

    /// Who has to know the addresses of a name before the proxy is asked for it.
    package enum NameCheck: String, Sendable, Equatable, CaseIterable {
        /// The gateway resolves it too, and refuses it if it may not connect to one of them.
        case gateway
        /// The proxy alone: only rules about names apply.
        case parent
    }

    /// Its name in lists, logs and metrics.
    package var name: String
    package var scheme = Scheme.http
    /// In lower case, an address without brackets.
    package var host = ""
    package var port: UInt16 = 0
    /// The user name; `nil` if no credentials are sent.
    package var user: String?
    /// Where the password comes from; `nil` if there is none.
    package var passwordSource: SecretSource?
    /// The password.
    package var password = SecretText("")
    package var authorization = Authorization.own
    package var resolves = NameCheck.gateway
    /// How often it is asked whether it still answers while no request shows that; 0 for never.
    package var probeMilliseconds: Int64 = 10_000

    /// Creates an entry with the defaults.
    package init(name: String) { self.name = name }

    /// Its URL, without credentials.
    package var url: String { "\(scheme.rawValue)://\(HostText.text(host, port: port))" }
}

/// A way to servers: an element of `parents` in `ways` or in an entry of `hosts`.
package enum WayName: Sendable, Hashable {
    /// Without another proxy.
    case direct
    /// Through the entry of `parents` with this name.
    case parent(String)

    /// As it is written.
    package var text: String {
        switch self {
        case .direct: "direct"
        case .parent(let name): name
        }
    }
}

/// By which ways servers are reached that no entry of `hosts` has ways for: `ways`.
package struct WaysConfiguration: Sendable, Equatable {
    /// In the order in which they are tried; empty for `direct` alone.
    package var parents: [WayName] = []
    /// The hosts that are reached without another proxy whatever ways they have.
    package var noProxy = DestinationList()

    /// Nothing but direct connections.
    package init() {}
}

extension DestinationList {
    /// Whether a host is named: by its name or, if it is an address, by a network too. No name is
    /// resolved for it.
    /// - Parameter host: in lower case, an address without brackets.
    package func names(host: String, port: UInt16) -> Bool {
        if let address = IPAddress(literal: host.utf8.span),
            contains(address)
        {
            return true
        }
        return contains(host: host.utf8.span, port: port)
    }
}

extension ConfigurationSnapshot {
    /// By which ways a host is reached; `nil` for a direct connection, because nothing else is
    /// configured for it.
    ///
    /// - Parameters:
    ///   - host: in lower case, an address without brackets.
    ///   - port: the port that the request names.
    ///   - entry: the index of the host entry that applies; `nil` if none does.
    ///   - rule: the ways that the rule names which allows the request; empty if it names none.
    package func ways(
        host: String, port: UInt16, entry: Int?, by rule: [WayName] = []
    ) -> [WayName]? {
        guard !parents.isEmpty else { return nil }
        let hostEntry = entry.map { hosts.entries[$0] }
        let names = rule.isEmpty ? hostEntry?.parents ?? ways.parents : rule
        guard !names.isEmpty, names != [.direct] else { return nil }
        guard !ways.noProxy.names(host: host, port: port),
            !(hostEntry?.noProxy.names(host: host, port: port) ?? false)
        else { return nil }
        return names
    }

    /// The entry of `parents` with a name.
    package func parent(named name: String) -> ParentConfiguration? {
        parents.first { $0.name == name }
    }
}
