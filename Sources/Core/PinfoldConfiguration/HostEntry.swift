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
    /// Indices into ``ConfigurationSnapshot/pinsets``: all of them must pass.
    package var pinsets: [Int] = []
    /// How these servers are verified, with the defaults of `tls` filled in.
    package var tls: UpstreamTLS
    /// Replaces some of `timeouts` for these hosts.
    package var timeouts = HostTimeouts()
    /// Whether responses of these hosts may be stored.
    package var cacheStores = true
    /// Request header fields, in lower case, whose values are part of the cache key for these
    /// hosts, in addition to what the response's Vary nominates: responses to requests that differ
    /// in one of them are stored separately.
    package var cacheKeyFields: [String] = []
    /// The periodic reachability probe; `nil` if reachability is learned only from traffic.
    package var probe: ProbeConfiguration?
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

/// How an upstream server is verified.
package struct UpstreamTLS: Sendable, Equatable {
    /// The minimum TLS version.
    package var minimum: TLSMinimum
    /// The trust anchors, at least one source.
    package var roots: [TrustRoots]
    /// What is required of chains beyond what the TLS library verifies; `nil` means `strict` as the
    /// unconfigured default (``ChosenProfile/byDefault``).
    package var profile: TrustProfile?
    /// The TLS 1.2 ciphers to offer, in OpenSSL's format; `nil` for OpenSSL's default.
    package var ciphers: String?
    /// The TLS 1.3 cipher suites to offer, separated by `:`; `nil` for OpenSSL's default.
    package var cipherSuites: String?
    /// The lists against which every certificate below the anchor is checked; empty if revocation
    /// is not checked.
    package var crls: [CRLFile] = []
    /// Whether servers must staple an OCSP response that declares their certificate good.
    package var ocspStapling = OCSPStapling.ignored
    /// The identity presented to servers that ask for one; `nil` for none. Only in host entries.
    package var clientIdentity: ClientIdentity?
    /// The requirements of Certificate Transparency.
    package var transparency = CertificateTransparency()

    /// Creates settings with this version, these roots and this profile.
    package init(
        minimum: TLSMinimum = .tls12, roots: [TrustRoots] = [.system],
        profile: TrustProfile? = nil
    ) {
        self.minimum = minimum
        self.roots = roots
        self.profile = profile
    }
}

/// The requirements on OCSP responses that servers staple to their handshake.
package enum OCSPStapling: String, Sendable, Equatable, CaseIterable {
    /// Servers are not asked for one.
    case ignored
    /// A server is refused without one that declares its certificate good.
    case required
}

/// How many logs must have promised to publish a server's certificate (RFC 6962).
package struct CertificateTransparency: Sendable, Equatable {
    /// The number of different logs from which valid timestamps (SCTs) are required; 0 for none.
    package var minimumSCTs = 0
    /// The list of logs, read when the configuration was loaded: its absolute path and its
    /// contents; `nil` if none is configured.
    package var list: LogListFile?

    /// Creates settings that require no timestamps.
    package init() {}

    /// The policy for evaluating servers; `nil` if nothing is required.
    package var policy: TransparencyPolicy? {
        guard minimumSCTs > 0 else { return nil }
        // Without logs no server passes.
        return TransparencyPolicy(minimum: minimumSCTs, logs: list?.list.logs ?? [])
    }

    /// Whether servers are evaluated alike: a list that is merely more recent changes nothing, nor
    /// does one that is not needed.
    package static func == (left: Self, right: Self) -> Bool {
        left.minimumSCTs == right.minimumSCTs
            && (left.minimumSCTs == 0 || left.list?.list.logs == right.list?.list.logs)
    }
}

/// A list of logs with the path of its file.
package struct LogListFile: Sendable, Equatable {
    package var path: String
    package var list: TransparencyLogList

    package init(path: String, list: TransparencyLogList) {
        self.path = path
        self.list = list
    }
}

/// The minimum TLS version.
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

/// A pinset and the texts from which it was created.
package struct PinsetEntry: Sendable, Equatable {
    /// The requirements for a server. The pinset's name is the key under `pinsets`: letters,
    /// digits, `.`, `_` and `-`, at most 64 bytes.
    package var pinset: Pinset
    /// The pins as written, with file paths made absolute.
    package var pinTexts: [String] = []
    /// The absolute paths of the files that ``Pinset/anchors`` were read from.
    package var anchorPaths: [String] = []
    /// Where failures are reported; `nil` if they are not.
    package var reportTo: ReportDestination?

    /// Creates an entry without texts.
    package init(pinset: Pinset) {
        self.pinset = pinset
    }
}

/// The entries of `hosts`, with an index of their patterns.
package struct HostTable: Sendable, Equatable {
    /// The entries in the order written.
    package let entries: [HostEntry]
    /// The index of all patterns.
    package let index: HostIndex
    /// The entry for the hosts that no pattern matches; `nil` if there is none, as in every
    /// configuration file. It is for programs that have one policy for all hosts: its pinsets pin
    /// every host.
    package let everyOther: Int?
    /// The patterns of the entries with pinsets, without their ports.
    private let pinned: HostIndex

    /// Builds the indices.
    /// - Parameter everyOther: the index of the entry for the hosts that no pattern matches.
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

/// The networks and host patterns of `access.destinations`.
package struct DestinationList: Sendable, Equatable {
    /// The networks; a single address is a network of one.
    package let networks: [IPNetwork]
    /// The patterns, which are matched against the host named in the request, in the order written.
    package let patterns: [HostPattern]
    @usableFromInline let index: HostIndex

    /// Builds the index of the patterns.
    package init(networks: [IPNetwork] = [], patterns: [HostPattern] = []) {
        self.networks = networks
        self.patterns = patterns
        index = HostIndex(patterns: patterns.map { [$0] })
    }

    /// Whether a resolved address is in one of the networks.
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
