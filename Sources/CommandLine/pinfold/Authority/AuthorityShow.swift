import ArgumentParser
import Clocks
import HTTPCore
import PinfoldTLS

/// `pinfold ca show`.
struct AuthorityShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show a CA's name, key, validity, limits and fingerprint.",
        discussion: "Exits with 1 if the CA is not valid at present.")

    @OptionGroup var paths: AuthorityPaths

    func run() throws {
        let authority = try paths.read()
        writeToStandardOutput(Self.text(authority))
        do {
            try authority.requireValid(at: Clock.wallSeconds())
        } catch {
            throw CommandError("\(paths.certificate): \(error)")
        }
    }

    /// The properties of a CA, one per line.
    static func text(_ authority: CertificateAuthority) -> String {
        let now = Clock.wallSeconds()
        let inspection = authority.inspection
        let days = CivilDate.days(from: now, to: inspection.notAfter)
        var lines = [
            "subject: \(inspection.identity.subject)",
            "key: \(authority.keyText)",
            "valid from: \(CivilDate.text(secondsSince1970: inspection.notBefore))",
            "valid until: \(CivilDate.text(secondsSince1970: inspection.notAfter)) (\(days) days)",
            "SHA-256 fingerprint: \(authority.fingerprint.fingerprintText)",
        ]
        if let constraints = authority.constraintsText {
            let parts = constraints.split(separator: "\n").map { $0.drop { $0 == " " } }
            lines.append("limits: \(parts.joined(separator: " "))")
        }
        if authority.isVouchedFor(at: now) {
            lines.append("also accepted by clients that trust the previous CA")
        }
        return lines.joined(separator: "\n") + "\n"
    }
}
