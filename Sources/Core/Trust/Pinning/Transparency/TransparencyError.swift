import HTTPCore

/// Where a server presents timestamps (RFC 6962 §3.3).
package enum TimestampSource: String, Hashable, Sendable, CaseIterable {
    case certificate
    case handshake
    case status

    /// For display.
    package var text: String {
        switch self {
        case .certificate: "in the certificate"
        case .handshake: "in the handshake"
        case .status: "in the stapled OCSP response"
        }
    }
}

/// Why a timestamp does not count.
package enum TimestampRejectionReason: Error, Hashable, Sendable {
    /// A whole list of timestamps is malformed.
    case malformedList
    case malformed
    /// An unknown version; the format of what follows is unknown, too.
    case unknownVersion(UInt8)
    case unknownLog(SHA256Digest)
    /// According to the list of logs the log's timestamps are not accepted; `nil` if it gives no
    /// state.
    case state(TransparencyLog.State?, log: String)
    /// The log's key is of a kind that logs must not use.
    case unknownKey(log: String)
    /// The log is retired, and the timestamp is not in the certificate.
    case besideCertificate(log: String)
    /// Issued after the log was retired, at this time in seconds since 1970.
    case afterRetirement(log: String, at: Int64)
    /// The log does not accept certificates that expire when this one does.
    case otherExpiry(log: String)
    /// Issued in the future: at this time, in seconds since 1970.
    case inFuture(log: String, at: Int64)
    /// Signed with an algorithm that logs must not use.
    case unknownSignature(log: String)
    case wrongSignature(log: String)
    /// Another timestamp of the same log already counts.
    case sameLog(log: String)
    /// The key of the certificate's issuer, which is part of what is signed, is not known.
    case noIssuer(log: String)

    /// For display.
    package var text: String {
        switch self {
        case .malformedList: return "a malformed list"
        case .malformed: return "a malformed one"
        case .unknownVersion(let version): return "one with the unknown version \(Int(version) + 1)"
        case .unknownLog(let id):
            return "one from a log that is not in the list (\(Base64.encode(id.bytes)))"
        case .state(let state, let log):
            return state.map { "one from \(log), a log that is \($0.rawValue)" }
                ?? "one from \(log), a log without a state"
        case .unknownKey(let log): return "one from \(log), whose key is of an unknown type"
        case .besideCertificate(let log):
            return "one from \(log), which is retired: only those in certificates count"
        case .afterRetirement(let log, let at):
            return "one from \(log), issued after it was retired at \(Self.time(at))"
        case .otherExpiry(let log):
            return "one from \(log), which does not accept certificates with this expiry"
        case .inFuture(let log, let at):
            return "one from \(log), issued in the future at \(Self.time(at))"
        case .unknownSignature(let log): return "one from \(log) with an unknown type of signature"
        case .wrongSignature(let log): return "one from \(log) whose signature is wrong"
        case .sameLog(let log): return "another one from \(log)"
        case .noIssuer(let log):
            return "one from \(log) that cannot be checked without the issuer's certificate"
        }
    }

    private static func time(_ seconds: Int64) -> String {
        CivilDate.text(secondsSince1970: seconds)
    }
}

/// Too few of a server's timestamps count.
package struct TransparencyError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A timestamp that does not count, and why.
    package struct Rejected: Hashable, Sendable {
        package var source: TimestampSource
        package var reason: TimestampRejectionReason

        package init(_ source: TimestampSource, _ reason: TimestampRejectionReason) {
            self.source = source
            self.reason = reason
        }
    }

    /// The maximum number of rejected timestamps that the text lists.
    static let maximumListed = 6

    /// The number of different logs from which valid timestamps are required, and the number found.
    package var minimum: Int
    package var valid: Int
    package var rejected: [Rejected]
    /// The number of timestamps whose signatures were not checked, because there are too many.
    package var ignored = 0

    package init(minimum: Int, valid: Int, rejected: [Rejected], ignored: Int = 0) {
        self.minimum = minimum
        self.valid = valid
        self.rejected = rejected
        self.ignored = ignored
    }

    /// One sentence.
    package var description: String {
        var text =
            "valid certificate timestamps (SCTs) from \(minimum) "
            + "\(minimum == 1 ? "log" : "different logs") are required, but the server has "
            + (valid == 0 ? "none" : "them from \(valid)")
        if valid >= minimum { text += ", all retired, and at least one must not be" }
        if rejected.isEmpty, ignored == 0 { return text }
        var parts = rejected.prefix(Self.maximumListed).map {
            "\($0.source.text) \($0.reason.text)"
        }
        let more = rejected.count - parts.count
        if more > 0 { parts.append("\(more) more") }
        if ignored > 0 { parts.append("\(ignored) that were not checked") }
        text += "; not counted: \(parts.joined(separator: ", "))"
        return text
    }
}
