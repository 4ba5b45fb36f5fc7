import HTTPCore

/// Where a server shows timestamps (RFC 6962 §3.3).
package enum TimestampSource: String, Hashable, Sendable, CaseIterable {
    case certificate
    case handshake
    case status

    /// For people.
    package var text: String {
        switch self {
        case .certificate: "in the certificate"
        case .handshake: "in the handshake"
        case .status: "in the stapled OCSP response"
        }
    }
}

/// Why a timestamp does not count.
package enum TimestampRejection: Error, Hashable, Sendable {
    /// A whole list of them cannot be read.
    case malformedList
    case malformed
    case unknownVersion(UInt8)
    case unknownLog(SHA256Digest)
    /// The list of logs says that the log's timestamps are worth nothing; nil: nothing.
    case state(TransparencyLog.State?, log: String)
    /// The log's key is of a kind that logs may not have.
    case unknownKey(log: String)
    /// The log is retired, and the timestamp is not in the certificate.
    case besideCertificate(log: String)
    /// Given when the log was retired already, at this time in seconds since 1970.
    case afterRetirement(log: String, at: Int64)
    /// The log takes no certificates that expire when this one does.
    case otherExpiry(log: String)
    /// Given in the future: at this time, in seconds since 1970.
    case inFuture(log: String, at: Int64)
    /// Signed by a kind of signature that logs have not.
    case unknownSignature(log: String)
    case wrongSignature(log: String)
    /// Another one of the same log counts already.
    case sameLog(log: String)
    /// The key of the certificate's issuer, which is part of what is signed, is not known.
    case noIssuer(log: String)

    /// For people.
    package var text: String {
        switch self {
        case .malformedList: return "a list that is malformed"
        case .malformed: return "a malformed one"
        case .unknownVersion(let version): return "one of the unknown version \(Int(version) + 1)"
        case .unknownLog(let id):
            return "one of a log that is not in the list (\(Base64.encode(id.bytes)))"
        case .state(let state, let log):
            return state.map { "one of \(log), a log that is \($0.rawValue)" }
                ?? "one of \(log), a log without a state"
        case .unknownKey(let log): return "one of \(log), whose key is of an unknown kind"
        case .besideCertificate(let log):
            return "one of \(log), which is retired: only those in certificates count"
        case .afterRetirement(let log, let at):
            return "one of \(log) from after it was retired at \(Self.time(at))"
        case .otherExpiry(let log):
            return "one of \(log), which takes no certificates that expire when this one does"
        case .inFuture(let log, let at):
            return "one of \(log) from the future, \(Self.time(at))"
        case .unknownSignature(let log): return "one of \(log) with an unknown kind of signature"
        case .wrongSignature(let log): return "one of \(log) whose signature is wrong"
        case .sameLog(let log): return "another one of \(log)"
        case .noIssuer(let log):
            return "one of \(log) that cannot be checked without the issuer's certificate"
        }
    }

    private static func time(_ seconds: Int64) -> String {
        CivilDate.text(secondsSince1970: seconds)
    }
}

/// Too few of a server's timestamps count.
package struct TransparencyFailure: Hashable, Sendable, CustomStringConvertible {
    /// One that does not count, and why.
    package struct Rejected: Hashable, Sendable {
        package var source: TimestampSource
        package var why: TimestampRejection

        package init(_ source: TimestampSource, _ why: TimestampRejection) {
            self.source = source
            self.why = why
        }
    }

    /// Rejected ones that the text tells of at most.
    static let toldAtMost = 6

    /// Different logs whose timestamps are asked for, and those that there are.
    package var minimum: Int
    package var valid: Int
    package var rejected: [Rejected]
    /// Timestamps whose signatures were not checked, for there are more than are.
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
            "valid certificate timestamps (SCTs) of \(minimum) "
            + "\(minimum == 1 ? "log is" : "different logs are") asked for, and the server has "
            + (valid == 0 ? "none" : "those of \(valid)")
        if valid >= minimum { text += ", all retired, where one that is not is asked for" }
        if rejected.isEmpty, ignored == 0 { return text }
        var told = rejected.prefix(Self.toldAtMost).map { "\($0.source.text) \($0.why.text)" }
        let more = rejected.count - told.count
        if more > 0 { told.append("\(more) more") }
        if ignored > 0 { told.append("\(ignored) that were not checked") }
        text += "; not counted: \(told.joined(separator: ", "))"
        return text
    }
}
