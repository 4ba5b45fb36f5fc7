import HTTPCore
import Trust

/// The settings of the hosts that one entry of `hosts` matches.
package struct HostEntry: Sendable, Equatable {
    /// The patterns, at least one; the entry applies if any of them matches.
    package var match: [HostPattern] = []
    /// The entry's name in metrics and the access log; `nil` if that is its first pattern.
    package var name: String?
    /// Whether clear-text requests are sent as verified TLS.
    package var upgradesToHTTPS = false
    /// How CONNECT to these hosts is handled.
    package var tunnel = TunnelMode.auto
    /// How inspected tunnels that turn out to be TLS 1.3 are handled.
    package var tls13Tunnel = TLS13TunnelMode.refuse
    /// What happens to open tunnels when a reload changes how these hosts are verified.
    package var liveTunnels = LiveTunnelMode.auto
    /// Whether CONNECT to these hosts is intercepted; decided before `tunnel` is used.
    package var intercept = InterceptMode.auto
    /// How requests that would be sent in clear text are handled.
    package var clearText = ClearTextMode.auto
    /// How requests to switch to another protocol than HTTP are handled.
    package var switchProtocols = SwitchMode.auto
    /// Whether HTTP/2 is spoken with these servers.
    package var http2 = ServerHTTP2.auto
    /// Indices into ``ConfigurationSnapshot/pinsets``: all of them must pass.
    package var pinsets: [Int] = []
    /// Whether the keys of these servers are remembered; `nil` for what is said of all hosts.
    package var pinObservation: PinObservationMode?
    /// How these servers are verified, with the defaults of `tls` filled in.
    package var tls: UpstreamTLS
    /// Replaces some of `timeouts` for these hosts.
    package var timeouts = HostTimeouts()
    /// What is said about the cache.
    package var cache = CacheRules.ofEntry
    /// What is said about some paths, in the order in which they are tried.
    package var paths: [PathRule] = []
    /// The periodic reachability probe; `nil` if reachability is learned only from traffic.
    package var probe: ProbeConfiguration?
    /// By which ways these hosts are reached, in the order in which they are tried; `nil` for those
    /// of all hosts.
    package var parents: [WayName]?
    /// The hosts among them that are reached without another proxy.
    package var noProxy = DestinationList()
    /// The gateway's name in messages about these hosts; `nil` for that of all.
    package var via: GatewayName?
    /// How requests are changed.
    package var request = RequestRules()
    /// How responses are checked and changed.
    package var response = ResponseRules()

    /// Creates an entry that sets nothing but how its servers are verified.
    package init(tls: UpstreamTLS = UpstreamTLS()) {
        self.tls = tls
    }

    /// The entry's name in metrics and the access log.
    package var label: String { name ?? match.first?.description ?? "" }
}

// What is said about the cache, with the defaults.
extension HostEntry {
    /// Whether responses of these hosts may be stored.
    package var cacheStores: Bool {
        get { cache.stores ?? true }
        set { cache.stores = newValue }
    }

    /// Request header fields, in lower case, whose values are part of the cache key for these
    /// hosts, in addition to what the response's Vary nominates: responses to requests that differ
    /// in one of them are stored separately.
    package var cacheKeyFields: [String] {
        get { cache.key.fields ?? [] }
        set { cache.key.fields = newValue }
    }

    /// The fields of the key under some rules, with those that the rules for requests make depend
    /// on who is asking.
    package func keyFields(under rules: CacheRules) -> [String] {
        let fields = rules.key.fields ?? []
        return request.forwardsUser ? fields + ["x-forwarded-user"] : fields
    }

    /// What is said about the cache for a path.
    /// - Parameter index: which of ``paths`` is the first that matches; `nil` if none does.
    package func cacheRules(path index: Int?) -> CacheRules {
        index.map { paths[$0].cache.over(cache) } ?? cache
    }
}

/// How CONNECT is handled.
package enum TunnelMode: String, Sendable, Equatable, CaseIterable {
    /// Refused if the host has pinsets, which a tunnel would bypass; otherwise passed.
    case auto
    /// Bytes are relayed unexamined.
    case pass
    /// The server's handshake is held back until the server has been verified; then bytes are
    /// relayed unexamined.
    case inspect
    /// CONNECT is refused.
    case refuse
}

/// What happens to open tunnels, and to connections upgraded to another protocol, when a reload
/// changes how their host is verified, or forbids them.
package enum LiveTunnelMode: String, Sendable, Equatable, CaseIterable {
    /// Those whose server was verified when they were opened are closed, and those that `access` no
    /// longer allows.
    case auto
    /// All of them are closed.
    case close
    /// They continue until they end by themselves.
    case keep
}

/// How inspected tunnels are handled in which TLS 1.3 is spoken, where the server's certificate is
/// encrypted.
package enum TLS13TunnelMode: String, Sendable, Equatable, CaseIterable {
    /// They are closed.
    case refuse
    /// A separate connection to the same address is verified in their place.
    case probe
    /// They are intercepted.
    case intercept
}

/// How requests that would be sent in clear text are handled.
package enum ClearTextMode: String, Sendable, Equatable, CaseIterable {
    /// Refused if the host has pinsets, which clear text would bypass; otherwise sent.
    case auto
    /// They are sent.
    case allow
    /// They are refused.
    case refuse
}

/// How requests are handled that ask to switch the connection to another protocol (Upgrade, RFC
/// 9110 §7.8), for example WebSocket. HTTP and TLS are never switched to.
package enum SwitchMode: String, Sendable, Equatable, CaseIterable {
    /// Refused if the entry has rules about content or responses, which the other protocol would
    /// bypass; otherwise forwarded.
    case auto
    /// They are forwarded.
    case allow
    /// They are refused.
    case refuse
}

/// Whether HTTP/2 is spoken with servers.
package enum ServerHTTP2: String, Sendable, Equatable, CaseIterable {
    /// Over TLS, with those that select it when it is offered by ALPN; in clear text never.
    case auto
    /// Nothing else: a server that does not select it is refused, and in clear text it is spoken
    /// from the first byte (prior knowledge, RFC 9113 §3.3).
    case require
    /// All speak HTTP/1.
    case off
}

/// A periodic request that shows whether a host is reachable without waiting for traffic. It is
/// sent to every exact pattern of the entry.
package struct ProbeConfiguration: Sendable, Equatable {
    /// The time between two probes.
    package var intervalMilliseconds: Int64 = 30_000
    /// The path and query to request; begins with `/`.
    package var path = "/"

    /// Creates the defaults.
    package init() {}
}
