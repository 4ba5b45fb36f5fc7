import ArgumentParser
import Clocks
import PinfoldTLS

/// `pinfold ca rotate`.
struct AuthorityRotate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Replace the CA with a new one, cross-signed by the old one.",
        discussion: """
            The new CA has a new key and the limits of the old CA. Until the old CA expires, \
            clients that trust either of the two accept the certificates that the new one issues. \
            After this command, reload the gateway, and install the new certificate (`pinfold ca \
            export`) on all clients before the old CA expires and before the next rotation. The \
            old files are kept with the suffix .previous; the old key is no longer needed. If a \
            CA's key has been stolen, do not rotate the CA: remove it from all clients, and create \
            a new one with `pinfold ca init`.
            """)

    @OptionGroup var paths: AuthorityPaths
    @OptionGroup var options: AuthorityOptions

    func run() throws {
        let old = try paths.read()
        let now = Clock.wallSeconds()
        do {
            try old.requireValid(at: now)
        } catch {
            throw CommandError(
                "\(paths.certificate): \(error), so it cannot sign a successor; create a new CA "
                    + "with `pinfold ca init` and install it on all clients")
        }
        try replace(old)
        let authority = try paths.read()
        writeToStandardOutput(
            """
            \(AuthorityShow.text(authority))
            \(paths.certificate) and \(paths.key) now hold the new CA; the old files are \
            \(paths.certificate).previous
            and \(paths.key).previous. Reload the gateway, then install the new certificate on all
            clients. Clients that trust only the old CA are served until \(old.endText).

            """)
    }

    /// Writes the successor's files, links the old files to other names, and replaces the old files
    /// with the new ones. A gateway that reloads between the last two steps finds a key that does
    /// not belong to the certificate, rejects it, and keeps its current authority.
    private func replace(_ old: CertificateAuthority) throws {
        let (newCertificate, newKey) = (paths.certificate + ".new", paths.key + ".new")
        var files = NewFiles()
        do {
            let kind: AuthorityOptions.KeyType = old.keyText.hasPrefix("RSA") ? .rsa : .ec
            let made = try old.makeSuccessor(options.profile(byDefault: kind))
            try files.write(made.keyPEM, to: newKey, mode: NewFiles.secret)
            try files.write(made.certificatePEM, to: newCertificate, mode: NewFiles.open)
            try files.link(paths.certificate, to: paths.certificate + ".previous")
            try files.link(paths.key, to: paths.key + ".previous")
            try NewFiles.replace(paths.key, with: newKey)
        } catch {
            files.remove()
            throw CommandError("\(error)")
        }
        do {
            try NewFiles.replace(paths.certificate, with: newCertificate)
        } catch {
            throw CommandError(
                "\(error); \(paths.key) already holds the new key: rename \(newCertificate) to "
                    + "\(paths.certificate)")
        }
    }
}
