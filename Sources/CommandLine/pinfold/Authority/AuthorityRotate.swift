import ArgumentParser
import Clocks
import PinfoldTLS

/// `pinfold ca rotate`.
struct AuthorityRotate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate",
        abstract: "Put a new authority in the place of one, which vouches for it.",
        discussion: """
            The new one has a new key and the limits of the old one. Until the old one ends, \
            clients that trust either accept what the new one issues: reload the gateway, install \
            the new certificate (`pinfold ca export`) on all clients, and be done before the old \
            one ends and before the next rotation. The old files are kept as NAME.previous; their \
            key is not needed any more. An authority whose key has been stolen must not vouch for \
            another: remove it from all clients, and make a new one with `pinfold ca init`.
            """)

    @OptionGroup var paths: AuthorityPaths
    @OptionGroup var options: AuthorityOptions

    func run() throws {
        let old = try paths.read()
        let now = Clock.coarseWallSeconds()
        do {
            try old.requireValid(at: now)
        } catch {
            throw Failure(
                "\(paths.certificate): \(error): it cannot vouch for another; make one with "
                    + "`pinfold ca init` and install it everywhere")
        }
        try replace(old)
        let authority = try paths.read()
        writeToStandardOutput(
            """
            \(AuthorityShow.text(authority))
            \(paths.certificate) and \(paths.key) are the new authority's; the old files are \
            \(paths.certificate).previous
            and \(paths.key).previous. Reload the gateway, then install the new certificate on all
            clients: those that still trust the old one alone are served until
            \(old.endText).

            """)
    }

    /// Makes the successor's files, keeps the old ones under other names, and puts the new ones in
    /// their place. A gateway that reloads between the last two steps finds a key that is another
    /// certificate's, refuses it, and stays with what it has.
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
            throw Failure("\(error)")
        }
        do {
            try NewFiles.replace(paths.certificate, with: newCertificate)
        } catch {
            throw Failure(
                "\(error); \(paths.key) is the new key already: rename \(newCertificate) to "
                    + "\(paths.certificate)")
        }
    }
}
