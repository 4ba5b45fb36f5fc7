import ArgumentParser
import Clocks
import Gateway
import PinfoldTLS

/// `pinfold ca`: manages the certificate authority of intercepted tunnels.
struct AuthorityCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Create, show, export and rotate the CA for intercepted tunnels.",
        discussion: """
            This certificate authority (CA) issues the certificates that the gateway presents to \
            clients of intercepted hosts. Whoever has its key can impersonate any server to \
            clients that trust its certificate: keep the key on the gateway, and use --permit to \
            limit the CA if you know the names in advance.
            """,
        subcommands: [
            AuthorityInit.self, AuthorityShow.self, AuthorityExport.self, AuthorityRotate.self,
        ])
}

/// The file of the CA's certificate; by default that of `pinfold run --intercept`.
struct AuthorityCertificatePath: ParsableArguments {
    // Optional, so that the help does not show the home directory of the user who runs it.
    @Option(
        name: .customLong("certificate"),
        help: ArgumentHelp(
            "The file with the CA's certificate. (default: ca.pem in $XDG_STATE_HOME/pinfold, or "
                + "in ~/.local/state/pinfold)",
            valueName: "file"), completion: .file())
    var given: String?

    var path: String { given ?? ConfigurationEnvironment.ofProcess().defaultAuthority.certificate }
}

/// The CA's files; by default those of `pinfold run --intercept`.
struct AuthorityPaths: ParsableArguments {
    @OptionGroup var certificateFile: AuthorityCertificatePath

    @Option(
        name: .customLong("key"),
        help: ArgumentHelp(
            "The file with the CA's private key. (default: ca.key in $XDG_STATE_HOME/pinfold, or "
                + "in ~/.local/state/pinfold)",
            valueName: "file"), completion: .file())
    var givenKey: String?

    var certificate: String { certificateFile.path }
    var key: String { givenKey ?? ConfigurationEnvironment.ofProcess().defaultAuthority.key }

    /// Reads the CA, whether or not it is currently valid.
    func read() throws -> CertificateAuthority {
        do {
            let read = try CertificateAuthority.read(
                certificatePath: certificate, keyPath: key, now: nil)
            if let exposure = read.exposure { throw CommandError(exposure) }
            return read.authority
        } catch let error as AuthorityFileError {
            throw CommandError(error.description)
        }
    }
}

/// The options for a new CA.
struct AuthorityOptions: ParsableArguments {
    /// The types of key.
    enum KeyType: String, CaseIterable, ExpressibleByArgument {
        case ec, rsa
    }

    /// Thirty years.
    private static let maximumDays = 10_957

    @Option(
        help: ArgumentHelp(
            "The type of key: ec (P-256), or rsa for clients that do not support ECDSA."))
    var type: KeyType?

    @Option(
        help: ArgumentHelp("The size of an RSA key: 2048, 3072 or 4096.", valueName: "bits"))
    var bits = 2048

    @Option(help: ArgumentHelp("How long the certificate is valid.", valueName: "days"))
    var days = 3650

    @Option(
        help: ArgumentHelp("The CA's common name, at most 64 characters.", valueName: "text"))
    var name: String?

    func validate() throws {
        guard [2048, 3072, 4096].contains(bits) else {
            throw ValidationError("--bits must be 2048, 3072 or 4096")
        }
        guard (1...Self.maximumDays).contains(days) else {
            throw ValidationError("--days must be from 1 to \(Self.maximumDays)")
        }
        guard name.map({ (1...64).contains($0.count) }) ?? true else {
            throw ValidationError("--name must have 1 to 64 characters")
        }
    }

    /// The profile of the new CA.
    ///
    /// - Parameter byDefault: The type of key to use if none was given.
    func profile(byDefault: KeyType, limits: NameLimits = NameLimits()) -> AuthorityProfile {
        let now = Clock.wallSeconds()
        // Valid from yesterday on, for clients whose clocks are slow.
        return AuthorityProfile(
            key: (type ?? byDefault) == .ec ? .ecdsaP256 : .rsa(bits: bits),
            commonName: name ?? Self.defaultName(now: now),
            validity: now - 86_400...now + Int64(days) * 86_400, constraints: limits)
    }
}

/// An error that ends a command with a line on standard error and the exit code 1.
struct CommandError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
