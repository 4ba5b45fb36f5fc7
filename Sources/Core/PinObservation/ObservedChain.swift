import HTTPCore
import Trust

/// A certificate of a server's verified chain, as far as it is remembered.
package struct ObservedCertificate: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo, which is what a pin names.
    package var key: SHA256Digest
    /// SHA-256 of the certificate.
    package var fingerprint: SHA256Digest
    /// The subject and the issuer, for display: printable ASCII.
    package var subject: String
    package var issuer: String
    /// When it expires, in seconds since 1970.
    package var notAfter: Int64

    package init(
        key: SHA256Digest, fingerprint: SHA256Digest, subject: String, issuer: String,
        notAfter: Int64
    ) {
        self.key = key
        self.fingerprint = fingerprint
        self.subject = subject
        self.issuer = issuer
        self.notAfter = notAfter
    }
}

/// One valid way from a server's own certificate to a trusted root. There are several where
/// authorities have certified each other's keys.
package struct ObservedPath: Hashable, Sendable {
    /// The certificates above the server's own, the root last; none if that is itself trusted.
    package var issuers: [ObservedCertificate]
    /// Seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64
}

/// An address by which a certificate was seen.
package struct ObservedAddress: Hashable, Sendable {
    package var address: IPAddress
    /// Seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64
    /// New connections.
    package var count: UInt64
}

/// What is remembered of one certificate of a server, and of the valid paths above it.
package struct ObservedChain: Hashable, Sendable {
    package var leaf: ObservedCertificate
    /// The paths, the one that verification found first at the beginning; at least one.
    package var paths: [ObservedPath]
    /// Seconds since 1970.
    package var firstSeen: Int64
    package var lastSeen: Int64
    /// Connections that passed in every respect.
    package var verified: UInt64 = 0
    /// The different days (UTC) of those, and the last of them in seconds since 1970; `nil` if
    /// there was none.
    package var verifiedDays: UInt64 = 0
    package var lastVerified: Int64?
    /// Connections that passed only because a pinset reports instead of refusing.
    package var reported: UInt64 = 0
    /// The addresses; the one seen longest ago gives way.
    package var addresses: [ObservedAddress] = []
    /// Addresses that gave way.
    package var forgottenAddresses: UInt64 = 0

    /// The most paths that are remembered of a certificate.
    package static let pathsLimit = 4
    /// The most addresses that are remembered of a certificate.
    package static let addressesLimit = 16
    /// The most certificates above a server's own that are remembered of a path.
    package static let issuersLimit = 8

    /// Whether it has ever passed in every respect.
    package var isVerified: Bool { verified > 0 }

    /// Whether it says what a server's keys are: it has passed in every respect, report-only
    /// pinsets have not let it pass more often than that, and none was the last to do so. A moment
    /// without a pinset does not make an attacker's certificate the server's, and what somebody has
    /// pinned since counts for more than what passed before.
    package var isEvidence: Bool { verified > 0 && reported <= verified && !isReportedLast }

    /// Whether a report-only pinset let it pass when it was last seen.
    private var isReportedLast: Bool {
        reported > 0 && lastSeen > lastVerified ?? firstSeen - 1
    }

    /// The keys of all its certificates, the server's own first, then those nearest to it.
    package var keys: [SHA256Digest] {
        var keys = [leaf.key]
        let longest = paths.map(\.issuers.count).max() ?? 0
        for depth in 0..<longest {
            for path in paths where depth < path.issuers.count {
                let key = path.issuers[depth].key
                if !keys.contains(key) { keys.append(key) }
            }
        }
        return keys
    }

    /// The keys without those of roots.
    package var keysBelowRoot: [SHA256Digest] {
        [leaf.key] + paths.flatMap { $0.issuers.dropLast().map(\.key) }
    }

    /// The keys of the roots that it leads to.
    var rootKeys: [SHA256Digest] { paths.map { $0.issuers.last?.key ?? leaf.key } }

    /// Whether one of its certificates has a key.
    package func has(_ key: SHA256Digest) -> Bool {
        leaf.key == key || paths.contains { $0.issuers.contains { $0.key == key } }
    }
}

/// That a server was seen with a chain, once or several times in a row.
package struct Sighting: Hashable, Sendable {
    package var name: ObservedName
    package var leaf: ObservedCertificate
    /// The certificates above the server's own on each valid path; at least one path.
    package var paths: [[ObservedCertificate]]
    /// `nil` if it is unknown.
    package var address: IPAddress?
    /// Whether it passed only because a pinset reports instead of refusing.
    package var isReported: Bool
    /// The last time, in seconds since 1970.
    package var time: Int64
    package var count: UInt64

    package init(
        name: ObservedName, leaf: ObservedCertificate, paths: [[ObservedCertificate]],
        address: IPAddress?, isReported: Bool = false, time: Int64, count: UInt64 = 1
    ) {
        self.name = name
        self.leaf = leaf
        self.paths = paths
        self.address = address
        self.isReported = isReported
        self.time = time
        self.count = count
    }
}

/// The host and port of a server.
package struct ObservedName: Hashable, Sendable, CustomStringConvertible {
    /// In lower case, without brackets or a final dot.
    package var host: String
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// `host:port`, an IPv6 address in brackets.
    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
