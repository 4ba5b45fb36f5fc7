import ArgumentParser
import Gateway
import PinfoldTLS

/// `pinfold ca init`.
struct AuthorityInit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Create a CA: a certificate and a key. Existing files are never overwritten.")

    @OptionGroup var paths: AuthorityPaths
    @OptionGroup var options: AuthorityOptions

    @Option(
        help: ArgumentHelp(
            """
            Limit the CA to a name and all names below it, or to a network; repeatable. IP \
            addresses are excluded unless a network is given.
            """, valueName: "name or network"))
    var permit: [String] = []

    @Option(
        help: ArgumentHelp(
            "Create the files that `interception` in this configuration names.",
            valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            "With --config: if the configuration names no CA, create the one that `pinfold run "
                + "--intercept` uses by default. The value does not matter.",
            valueName: "host"))
    var intercept: [String] = []

    @Flag(help: "Do nothing if both files exist or the configuration names no CA.")
    var ifMissing = false

    func run() throws {
        guard let paths = try chosenPaths() else { return }
        if ifMissing, NewFiles.exists(paths.certificate), NewFiles.exists(paths.key) { return }
        let limits: NameLimits
        do {
            limits = try NameLimits(permit)
        } catch {
            throw ValidationError(
                "--permit \(error.text): expected a name such as example.com or a network such as "
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
            throw CommandError("\(error)")
        }
        let authority = try paths.read()
        writeToStandardOutput(Self.text(authority, at: paths))
    }

    /// The files to create: those of the configuration, if one was given. The result is `nil` if
    /// the configuration names none and `--if-missing` allows that.
    private func chosenPaths() throws -> AuthorityPaths? {
        guard let config else { return paths }
        do {
            let loader = ConfigurationLoader(environment: .ofProcess())
            var chosen = paths
            if let named = try loader.authorityPaths(file: config) {
                chosen.certificateFile.given = named.certificate
                chosen.givenKey = named.key
                return chosen
            }
        } catch {
            throw CommandError(error.description)
        }
        if !intercept.isEmpty { return paths }
        if ifMissing { return nil }
        throw CommandError(
            "\(config): interception.certificate and interception.key are missing")
    }

    private static func text(_ authority: CertificateAuthority, at paths: AuthorityPaths) -> String
    {
        """
        \(AuthorityShow.text(authority))
        Created \(paths.certificate) (install it on clients) and \(paths.key) (keep it secret).

        Add this to the configuration:

            interception: { certificate: \(paths.certificate), key: \(paths.key) }

        While the gateway runs, its administrative address serves the certificate at /ca.pem, and
        instructions for each kind of client at /setup.

        """
    }
}
