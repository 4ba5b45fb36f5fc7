import Trust

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
