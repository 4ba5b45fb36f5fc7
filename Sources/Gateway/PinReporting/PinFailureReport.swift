import HTTPCore
import PinfoldConfiguration
import Trust

/// One failure of a pinset as it is reported: RFC 7469 §3 as far as it applies, with additions.
package struct PinFailureReport: Sendable, Equatable {
    /// The pinset's name in the configuration.
    package var pinset: String
    /// The requested host, in lower case, and its port.
    package var host: String
    package var port: UInt16
    /// The pattern of the host entry that applied.
    package var notedHost: String
    /// Whether that pattern matches more than one name.
    package var includesSubdomains: Bool
    /// The reason: the token used in the log and on the error page.
    package var reason: String
    /// A sentence that describes it.
    package var detail: String
    /// Whether the server was refused; if not, it was accepted, and only reported.
    package var isEnforced: Bool
    /// When the pinset expires, in seconds since 1970, or `nil` for never.
    package var expires: Int64?
    /// The pinset's pins, `sha256/…` or a certificate's fingerprint.
    package var knownPins: [String]
    /// What the server sent in DER, the leaf first.
    package var served: [[UInt8]]
    /// The valid chain that can be built from it in DER, whatever its name; empty if there is none.
    package var validated: [[UInt8]]
    /// When it last happened, in seconds since 1970.
    package var time: Int64
    /// How often it happened since the last report of the same failure.
    package var count: UInt64 = 1

    /// The maximum number of DER bytes in one chain of a report; further certificates are left out.
    package static let chainBytes = 32 << 10

    /// A report of one failure.
    package init(
        pinset: String, host: String, port: UInt16, notedHost: String, includesSubdomains: Bool,
        reason: String, detail: String, isEnforced: Bool, expires: Int64?, knownPins: [String],
        served: [[UInt8]], validated: [[UInt8]], time: Int64
    ) {
        self.pinset = pinset
        self.host = host
        self.port = port
        self.notedHost = notedHost
        self.includesSubdomains = includesSubdomains
        self.reason = reason
        self.detail = detail
        self.isEnforced = isEnforced
        self.expires = expires
        self.knownPins = knownPins
        self.served = Self.bounded(served)
        self.validated = Self.bounded(validated)
        self.time = time
    }

    /// Bytes of DER in its chains.
    var chainBytes: Int { (served + validated).reduce(0) { $0 + $1.count } }

    /// The first certificates, as many as a report may contain.
    private static func bounded(_ chain: [[UInt8]]) -> [[UInt8]] {
        var bytes = 0
        return Array(
            chain.prefix { certificate in
                bytes += certificate.count
                return bytes <= chainBytes
            })
    }

    /// The report as JSON (RFC 8259): one object, in UTF-8.
    package var json: [UInt8] {
        var object = JSONObject()
        object.add("date-time", CivilDate.text(secondsSince1970: time))
        object.add("hostname", host)
        object.add("port", Int(port))
        if let expires {
            object.add("effective-expiration-date", CivilDate.text(secondsSince1970: expires))
        }
        object.add("include-subdomains", includesSubdomains)
        object.add("noted-hostname", notedHost)
        object.add("served-certificate-chain", served.map(PEM.text(certificate:)))
        object.add("validated-certificate-chain", validated.map(PEM.text(certificate:)))
        object.add("known-pins", knownPins.map(Self.pinText))
        object.add("pinset", pinset)
        object.add("enforced", isEnforced)
        object.add("reason", reason)
        object.add("detail", detail)
        object.add("count", Int(clamping: count))
        return Array(object.text.utf8)
    }

    /// A pin as RFC 7469 §2.1.1 writes it; a certificate's fingerprint likewise.
    private static func pinText(_ pin: String) -> String {
        let prefix = "sha256/"
        return pin.hasPrefix(prefix)
            ? "pin-sha256=\"\(pin.dropFirst(prefix.count))\"" : "certificate-sha256=\"\(pin)\""
    }
}

/// What a failure is reported under: after a reload that changes any of this, it counts as a new
/// failure.
package struct ReportPolicy: Hashable, Sendable {
    /// Normalized to enforced: subjects distinguish that themselves.
    package let pinset: Pinset
    package let destination: ReportDestination

    /// The policy of a pinset that reports to a destination.
    package init(pinset: Pinset, destination: ReportDestination) {
        var enforced = pinset
        enforced.isEnforced = true
        self.pinset = enforced
        self.destination = destination
    }

    /// The policy of a configured pinset, or `nil` if it does not report.
    package init?(_ entry: PinsetEntry) {
        guard let destination = entry.reportTo else { return nil }
        self.init(pinset: entry.pinset, destination: destination)
    }

    /// Hashes the name only, which spreads the lookups at each failure well enough.
    package func hash(into hasher: inout Hasher) { hasher.combine(pinset.name) }
}

/// What distinguishes failures.
package struct ReportSubject: Hashable, Sendable {
    package var policy: ReportPolicy
    package var pinset: String { policy.pinset.name }
    package var host: String
    package var port: UInt16
    /// The key of the server's certificate, `sha256/…`; empty if there is none.
    package var leafKey: String
    package var reason: String
    package var isEnforced: Bool

    /// Creates a subject from its parts.
    package init(
        policy: ReportPolicy, host: String, port: UInt16, leafKey: String, reason: String,
        isEnforced: Bool
    ) {
        self.policy = policy
        self.host = host
        self.port = port
        self.leafKey = leafKey
        self.reason = reason
        self.isEnforced = isEnforced
    }
}
