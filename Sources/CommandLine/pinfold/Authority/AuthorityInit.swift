import ArgumentParser
import Gateway
import PinfoldTLS

/// `pinfold ca init`.
struct AuthorityInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Make an authority: a certificate and a key, which are never overwritten.")

    @OptionGroup var paths: AuthorityPaths
    @OptionGroup var options: AuthorityOptions

    @Option(
        help: ArgumentHelp(
            """
            Limit it to a name and all names under it, or to a network; repeatable. Addresses are \
            excluded unless a network is named.
            """, valueName: "name or network"))
    var permit: [String] = []

    @Option(
        help: ArgumentHelp(
            "Make the files that this configuration names under interception.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "As for `pinfold run`, whose authority this makes; which hosts does not matter here.",
            valueName: "host"))
    var intercept: [String] = []

    @Flag(help: "Do nothing where both files are there, or the configuration names none.")
    var ifMissing = false

    func run() throws {
        guard let paths = try chosenPaths() else { return }
        if ifMissing, NewFiles.exists(paths.certificate), NewFiles.exists(paths.key) { return }
        let limits: NameLimits
        do {
            limits = try NameLimits(permit)
        } catch {
            throw ValidationError(
                "--permit \(error.text): neither a name, as in example.com, nor a network, as in "
                    + "10.0.0.0/8")
        }
        var files = NewFiles()
        do {
            let made = try CertificateAuthority.make(
                options.profile(byDefault: .ec, limits: limits))
            for path in [paths.key, paths.certificate] { try NewFiles.makeFolder(of: path) }
            try files.write(made.keyPEM, to: paths.key, mode: NewFiles.secret)
            try files.write(made.certificatePEM, to: paths.certificate, mode: NewFiles.open)
        } catch {
            files.remove()
            throw Failure("\(error)")
        }
        let authority = try paths.read()
        writeToStandardOutput(Self.text(authority, at: paths))
    }

    /// The configuration's files, if one is named; nil: it names none, and that is all right.
    private func chosenPaths() throws -> AuthorityPaths? {
        guard let config else { return paths }
        do {
            let loader = ConfigurationLoader(environment: .ofProcess())
            var chosen = paths
            if let named = try loader.authorityPaths(file: config) {
                (chosen.certificate, chosen.key) = named
                return chosen
            }
        } catch {
            throw Failure(error.description)
        }
        if !intercept.isEmpty { return paths }
        if ifMissing { return nil }
        throw Failure("\(config): names no interception.certificate and interception.key")
    }

    private static func text(_ authority: CertificateAuthority, at paths: AuthorityPaths) -> String
    {
        """
        \(AuthorityShow.text(authority))
        Made \(paths.certificate) (for clients to trust) and \(paths.key) (keep it secret).

        In the configuration:

            interception: { certificate: \(paths.certificate), key: \(paths.key) }

        While the gateway runs, its administrative address has the certificate at /ca.pem, and
        at /setup how each kind of client is told to trust it.

        """
    }
}
