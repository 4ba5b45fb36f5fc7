import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Trust

/// A query about trust: a server's certificates, and the policy to verify them with.
package struct TrustQuery {
    /// The source of certificates.
    package enum Material: Hashable, Sendable {
        /// PEM text in the query itself.
        case text(String)
        /// A file in PEM or DER.
        case file(String)
        /// The system's trust store; for trust anchors only.
        case system
        /// Certificates that were loaded from a file that a configuration names.
        case loaded(name: String, [[UInt8]])

        /// Text that is PEM, which its first line shows or that it has several lines, or else a
        /// file name.
        package init(_ text: String) {
            let isText = text.hasPrefix("-----BEGIN ") || text.utf8.contains(UInt8(ascii: "\n"))
            self = isText ? .text(text) : .file(text)
        }
    }

    /// The certificates that the server presents, leaf first.
    package var chain: [Material] = []
    /// Additional certificates for building chains.
    package var intermediates: [Material] = []
    /// The trust anchors.
    package var roots: [Material] = [.system]
    /// The requested name or IP address, or `nil` to skip the name check.
    package var host: String?
    /// The pinsets, all of which must pass.
    package var pinsets: [Pinset] = []
    /// The time at which the certificates must be valid, in seconds since 1970, or `nil` for now.
    package var time: Int64?
    package var profile = ChosenProfile(.strict)
    /// The CRLs in DER. If empty, revocation is not checked.
    package var revocationLists: [[UInt8]] = []
    /// Whether an OCSP response is required.
    package var requiresStaple = false
    /// The OCSP response that the server staples, in DER.
    package var staple: [UInt8]?
    /// The Certificate Transparency requirements, or `nil` if there are none.
    package var transparency: TransparencyPolicy?
    /// Whether the host has pinsets, but not in the entry of `hosts` that applies: the server is
    /// then refused, whatever it presents.
    package var bypassesPins = false

    package init() {}
}

/// Why a query cannot be answered.
package struct TrustQueryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Where the error is, what is wrong, and what was expected.
    package var description: String

    package init(_ description: String) { self.description = description }
}

/// The answer to a query: a verdict with its reason.
package struct TrustResult: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable {
        case pass
        case fail
        /// There is no verdict, because the query is invalid.
        case error
    }

    package var verdict: Verdict
    /// A token listed on the Reasons page: that of the refusal, as in the gateway's replies, or
    /// that of a `VerdictReason`.
    package var reason: String
    /// A description of the reason.
    package var detail: String

    init(_ verdict: Verdict, _ reason: String, _ detail: String) {
        self.verdict = verdict
        self.reason = reason
        self.detail = detail
    }

    /// The answer to an invalid query.
    package init(_ problem: TrustQueryError) {
        self.init(.error, VerdictReason.badQuestion.entry.token, problem.description)
    }

    /// One line of JSON, with its line feed.
    ///
    /// - Parameter id: The query's `id` as JSON, or `nil` to omit it.
    func line(id: String?) -> String {
        let rest =
            "\"verdict\":\"\(verdict.rawValue)\",\"reason\":\(JSONText.quoted(reason)),"
            + "\"detail\":\(JSONText.quoted(detail))}\n"
        return (id.map { "{\"id\":\($0)," } ?? "{") + rest
    }

    /// One line of JSON, with its line feed.
    package var json: String { line(id: nil) }
}
