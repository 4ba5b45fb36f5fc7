import HTTPCore
import Trust

/// What applies to the hosts that one entry of `hosts` matches.
package struct HostEntry: Sendable, Equatable {
    /// The patterns, at least one; the entry applies when one of them matches.
    package var match: [HostPattern] = []
    /// What metrics and the access log call it; nil: its first pattern.
    package var name: String?
    /// Whether clear-text requests go out as verified TLS.
    package var upgradesToHTTPS = false
    /// What is done with CONNECT to these hosts.
    package var tunnel = TunnelMode.auto
    /// What is done with inspected tunnels that turn out to be TLS 1.3.
    package var tls13Tunnel = TLS13TunnelMode.refuse
    /// What becomes of open tunnels when a reload changes what these hosts must prove.
    package var liveTunnels = LiveTunnelMode.auto
    /// Whether CONNECT to these hosts is intercepted, before `tunnel` is looked at.
    package var intercept = InterceptMode.auto
    /// What is done with requests that would go out in clear text.
    package var clearText = ClearTextMode.auto
    /// What is done with requests for another protocol than HTTP.
    package var switchProtocols = SwitchMode.auto
    /// Indexes into ``ConfigurationSnapshot/pinsets``: all of them must pass.
    package var pinsets: [Int] = []
    /// How these servers are verified, the defaults of `tls` filled in.
    package var tls: UpstreamTLS
    /// Replaces some of `timeouts` for these hosts.
    package var timeouts = HostTimeouts()
    /// Whether responses of these hosts may be stored.
    package var cacheStores = true
    /// Request header fields, in lower case, whose values are part of the cache key of these
    /// hosts, besides what the response's Vary nominates: responses to requests that differ in
    /// one of them are stored apart.
    package var cacheKeyFields: [String] = []
    /// The periodic reachability probe, or nil: reachability is learned from traffic alone.
    package var probe: ProbeConfiguration?
    /// What is changed of requests.
    package var request = RequestRules()
    /// What is asked, and changed, of responses.
    package var response = ResponseRules()

    /// An entry that says nothing but how its servers are verified.
    package init(tls: UpstreamTLS = UpstreamTLS()) {
        self.tls = tls
    }

    /// What metrics and the access log call it.
    package var label: String { name ?? match.first?.description ?? "" }
}

/// What is done with CONNECT.
package enum TunnelMode: String, Sendable, Equatable, CaseIterable {
    /// Refused where the host has pinsets, which a tunnel goes around; else passed.
    case auto
    /// Bytes are relayed unseen.
    case pass
    /// The server's handshake is held back until it has shown that it is who it is to be; then
    /// bytes are relayed unseen.
    case inspect
    /// CONNECT is refused.
    case refuse
}

/// What becomes of open tunnels, and of connections upgraded to another protocol, when a reload
/// changes what their host must prove, or forbids them.
package enum LiveTunnelMode: String, Sendable, Equatable, CaseIterable {
    /// Those whose server was verified when they were opened are closed, and those that `access`
    /// forbids now.
    case auto
    /// All of them are closed.
    case close
    /// They go on until they end by themselves.
    case keep
}

/// What is done with inspected tunnels in which TLS 1.3 is spoken, where the server's certificate
/// is encrypted.
package enum TLS13TunnelMode: String, Sendable, Equatable, CaseIterable {
    /// They are closed.
    case refuse
    /// Another connection to the same address is verified in their place.
    case probe
    /// They are intercepted.
    case intercept
}

/// What is done with requests that would go out in clear text.
package enum ClearTextMode: String, Sendable, Equatable, CaseIterable {
    /// Refused where the host has pinsets, which clear text goes around; else sent.
    case auto
    /// They are sent.
    case allow
    /// They are refused.
    case refuse
}

/// What is done with requests that ask for another protocol on their connection (Upgrade, RFC 9110
/// §7.8), as for a WebSocket. HTTP and TLS are never switched to.
package enum SwitchMode: String, Sendable, Equatable, CaseIterable {
    /// Refused where the entry has rules about content or responses, which the other protocol goes
    /// around; else passed on.
    case auto
    /// They are passed on.
    case allow
    /// They are refused.
    case refuse
}

/// A periodic request that tells whether a host is reachable without waiting for traffic. It goes
/// to every exact pattern of the entry.
package struct ProbeConfiguration: Sendable, Equatable {
    /// The time between two probes.
    package var intervalMilliseconds: Int64 = 30_000
    /// The path and query that are asked for; begins with `/`.
    package var path = "/"

    /// The defaults.
    package init() {}
}

/// How an upstream server is verified.
package struct UpstreamTLS: Sendable, Equatable {
    /// The oldest version that is spoken.
    package var minimum: TLSMinimum
    /// The trust anchors, at least one source.
    package var roots: [TrustRoots]
    /// What is asked of chains beyond what the TLS library verifies; nil is `strict` where nobody
    /// wrote it down (``ChosenProfile/byDefault``).
    package var profile: TrustProfile?
    /// What is offered for TLS 1.2, in OpenSSL's form; nil: OpenSSL's default.
    package var ciphers: String?
    /// What is offered for TLS 1.3, with `:` between names; nil: OpenSSL's default.
    package var cipherSuites: String?
    /// The lists that every certificate below the anchor is looked up in; empty: revocation is not
    /// looked at.
    package var crls: [CRLFile] = []
    /// Whether servers must staple an OCSP response that says that their certificate is good.
    package var ocspStapling = OCSPStapling.ignored
    /// What servers that ask for it are presented; nil: nothing. Of host entries only.
    package var clientIdentity: ClientIdentity?
    /// What is asked of Certificate Transparency.
    package var transparency = CertificateTransparency()

    /// The given version, roots and profile.
    package init(
        minimum: TLSMinimum = .tls12, roots: [TrustRoots] = [.system],
        profile: TrustProfile? = nil
    ) {
        self.minimum = minimum
        self.roots = roots
        self.profile = profile
    }
}

/// What is asked of OCSP responses that servers staple to their handshake.
package enum OCSPStapling: String, Sendable, Equatable, CaseIterable {
    /// Servers are not asked for one.
    case ignored
    /// Without one that says that the certificate is good, a server is refused.
    case required
}

/// How many logs must have promised to publish a server's certificate (RFC 6962).
package struct CertificateTransparency: Sendable, Equatable {
    /// Valid timestamps (SCTs) of different logs; 0 asks for none.
    package var minimumSCTs = 0
    /// The list of logs, read when the configuration was loaded: its absolute path and what is in
    /// it; nil: none is named.
    package var list: LogListFile?

    /// Asks for none.
    package init() {}

    /// What servers are judged by; nil: nothing is asked.
    package var policy: TransparencyPolicy? {
        guard minimumSCTs > 0 else { return nil }
        // Without logs no server passes.
        return TransparencyPolicy(minimum: minimumSCTs, logs: list?.list.logs ?? [])
    }

    /// Whether servers are judged alike: a list that is only younger changes nothing, nor does one
    /// of which nothing is asked.
    package static func == (left: Self, right: Self) -> Bool {
        left.minimumSCTs == right.minimumSCTs
            && (left.minimumSCTs == 0 || left.list?.list.logs == right.list?.list.logs)
    }
}

/// A list of logs with the file that it is from.
package struct LogListFile: Sendable, Equatable {
    package var path: String
    package var list: TransparencyLogList

    package init(path: String, list: TransparencyLogList) {
        self.path = path
        self.list = list
    }
}

/// The oldest TLS version that is spoken.
package enum TLSMinimum: String, Sendable, Equatable, CaseIterable {
    case tls12 = "1.2"
    case tls13 = "1.3"
}

/// One source of trust anchors.
package enum TrustRoots: Sendable, Equatable {
    /// The system's trust store.
    case system
    /// A file with at least one certificate, read when the configuration was loaded: its absolute
    /// path and the DER of its certificates.
    case file(path: String, certificates: [[UInt8]])
}

/// A pinset and the texts it was made from.
package struct PinsetEntry: Sendable, Equatable {
    /// What a server is held to. Its name is the key under `pinsets`: letters, digits, `.`, `_`
    /// and `-`, at most 64 bytes.
    package var pinset: Pinset
    /// The pins as written, with file paths made absolute.
    package var pinTexts: [String] = []
    /// The absolute paths of the files that ``Pinset/anchors`` were read from.
    package var anchorPaths: [String] = []
    /// Where each failure is reported to; nil: nowhere.
    package var reportTo: ReportDestination?

    /// A pinset without texts.
    package init(pinset: Pinset) {
        self.pinset = pinset
    }
}

/// The entries of `hosts` and the index over their patterns.
package struct HostTable: Sendable, Equatable {
    /// The entries in the order written.
    package let entries: [HostEntry]
    /// The index over all patterns.
    package let index: HostIndex
    /// The entry of the hosts that no pattern matches; nil, as in every configuration file: none.
    /// It is for whoever has one policy for all hosts: its pinsets pin every host.
    package let everyOther: Int?
    /// The patterns of the entries with pinsets, their ports dropped.
    private let pinned: HostIndex

    /// Builds the indexes.
    /// - Parameter everyOther: the index of the entry of the hosts that no pattern matches.
    package init(entries: [HostEntry], everyOther: Int? = nil) {
        precondition(everyOther.map(entries.indices.contains) ?? true)
        self.entries = entries
        self.everyOther = everyOther
        index = HostIndex(patterns: entries.map(\.match))
        let pinnedEntries = entries.filter { !$0.pinsets.isEmpty }
        pinned = HostIndex(patterns: pinnedEntries.map { $0.match.map(\.atEveryPort) })
    }

    /// Whether an entry with pinsets matches a host at some port.
    func isPinned(_ host: Span<UInt8>) -> Bool {
        if let everyOther, !entries[everyOther].pinsets.isEmpty { return true }
        return pinned.entry(host: host, port: 0) != nil
    }
}

/// Networks and host patterns of `access.destinations`.
package struct DestinationList: Sendable, Equatable {
    /// Networks; a single address is a network of one.
    package let networks: [IPNetwork]
    /// Patterns of the host as the request names it, in the order written.
    package let patterns: [HostPattern]
    @usableFromInline let index: HostIndex

    /// Builds the index over the patterns.
    package init(networks: [IPNetwork] = [], patterns: [HostPattern] = []) {
        self.networks = networks
        self.patterns = patterns
        index = HostIndex(patterns: patterns.map { [$0] })
    }

    /// Whether a resolved address lies in one of the networks.
    package func contains(_ address: IPAddress) -> Bool {
        networks.contains { $0.contains(address) }
    }

    /// Whether one of the patterns matches the request's host.
    /// - Parameters:
    ///   - host: The host name in lower case, or the address without brackets; no port.
    ///   - port: The port of the request's target.
    package func contains(host: Span<UInt8>, port: UInt16) -> Bool {
        index.entry(host: host, port: port) != nil
    }
}
