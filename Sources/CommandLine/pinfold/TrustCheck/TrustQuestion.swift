import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import Trust

/// What a verdict is asked for: a server's certificates, and the policy to judge them by.
package struct TrustQuestion {
    /// Where certificates are from.
    package enum Material: Hashable, Sendable {
        /// PEM, in the question itself.
        case text(String)
        /// A file, in PEM or DER.
        case file(String)
        /// The system's store; of trust anchors only.
        case system
        /// Certificates that a configuration's file of that name had.
        case loaded(name: String, [[UInt8]])

        /// A text that is PEM, by its first line or for having several, or the name of a file.
        package init(_ text: String) {
            let isText = text.hasPrefix("-----BEGIN ") || text.utf8.contains(UInt8(ascii: "\n"))
            self = isText ? .text(text) : .file(text)
        }
    }

    /// What the server presents, the leaf first.
    package var chain: [Material] = []
    /// Further certificates that chains may be built of.
    package var intermediates: [Material] = []
    /// The trust anchors.
    package var roots: [Material] = [.system]
    /// The name or address that is asked for; nil checks no name.
    package var host: String?
    /// What the chain is held to; all must pass.
    package var pinsets: [Pinset] = []
    /// When the certificates must be valid, in seconds since 1970; nil is now.
    package var time: Int64?
    package var profile = ChosenProfile(.strict)
    /// The DER of the lists that the chain is held to; empty: revocation is not looked at.
    package var revocationLists: [[UInt8]] = []
    /// Whether an OCSP response is required, and the one that the server staples, in DER.
    package var requiresStaple = false
    package var staple: [UInt8]?
    /// What is asked of Certificate Transparency; nil: nothing.
    package var transparency: TransparencyPolicy?
    /// The host has pinsets, and not in the entry of `hosts` that applies: it is refused, whatever
    /// it presents.
    package var goesAroundPins = false

    package init() {}
}

/// Why no verdict can be given: the question is not one.
package struct TrustQuestionProblem: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, where, and what was expected.
    package var description: String

    package init(_ description: String) { self.description = description }
}

/// A verdict.
package struct TrustAnswer: Hashable, Sendable {
    package enum Verdict: String, Hashable, Sendable {
        case pass
        case fail
        /// There is none: the question could not be understood.
        case error
    }

    package var verdict: Verdict
    /// A token of the page "Reasons": that of the refusal, as in a reply of the gateway, or that
    /// of a `VerdictReason`.
    package var reason: String
    /// A sentence.
    package var detail: String

    init(_ verdict: Verdict, _ reason: String, _ detail: String) {
        self.verdict = verdict
        self.reason = reason
        self.detail = detail
    }

    /// What is said of a question that is none.
    package init(_ problem: TrustQuestionProblem) {
        self.init(.error, VerdictReason.badQuestion.entry.token, problem.description)
    }

    /// One line of JSON, with its line feed.
    ///
    /// - Parameter id: JSON that tells the answer from others; nil leaves it out.
    func line(id: String?) -> String {
        let rest =
            "\"verdict\":\"\(verdict.rawValue)\",\"reason\":\(JSONText.quoted(reason)),"
            + "\"detail\":\(JSONText.quoted(detail))}\n"
        return (id.map { "{\"id\":\($0)," } ?? "{") + rest
    }

    /// One line of JSON, with its line feed.
    package var json: String { line(id: nil) }
}
