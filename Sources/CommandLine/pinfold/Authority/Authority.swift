import ArgumentParser
import Clocks
import Gateway
import PinfoldTLS

/// `pinfold ca`: the authority in whose name tunnels are answered.
struct Authority: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "Make, show, export and rotate the authority of intercepted tunnels.",
        discussion: """
            The authority issues the certificates that clients of intercepted hosts are shown. Its \
            key can impersonate any server to whoever trusts its certificate: keep it on the \
            gateway, and limit it with --permit where the names are known.
            """,
        subcommands: [
            AuthorityInit.self, AuthorityShow.self, AuthorityExport.self, AuthorityRotate.self,
        ])
}

/// The authority's files: those of `pinfold run --intercept`, if no others are named.
struct AuthorityPaths: ParsableArguments {
    @Option(help: ArgumentHelp("The file of its certificate.", valueName: "file"))
    var certificate = ConfigurationEnvironment.ofProcess().defaultAuthority.certificate

    @Option(help: ArgumentHelp("The file of its private key.", valueName: "file"))
    var key = ConfigurationEnvironment.ofProcess().defaultAuthority.key

    /// What the files hold, valid now or not.
    func read() throws -> CertificateAuthority {
        do {
            let read = try CertificateAuthority.read(
                certificatePath: certificate, keyPath: key, now: nil)
            if let exposure = read.exposure { throw Failure(exposure) }
            return read.authority
        } catch let error as AuthorityFileError {
            throw Failure(error.description)
        }
    }
}

/// What a new authority may be told.
struct AuthorityOptions: ParsableArguments {
    /// The kinds of key.
    enum KeyType: String, CaseIterable, ExpressibleByArgument {
        case ec, rsa
    }

    /// Thirty years.
    private static let maximumDays = 10_957

    @Option(
        help: ArgumentHelp(
            "The kind of its key: ec (P-256), or rsa for clients that verify no ECDSA."))
    var type: KeyType?

    @Option(help: ArgumentHelp("The bits of an RSA key: 2048, 3072 or 4096.", valueName: "count"))
    var bits = 2048

    @Option(help: ArgumentHelp("For how long it is valid.", valueName: "days"))
    var days = 3650

    @Option(help: ArgumentHelp("Its common name, 64 characters at most.", valueName: "text"))
    var name: String?

    func validate() throws {
        guard [2048, 3072, 4096].contains(bits) else {
            throw ValidationError("--bits takes 2048, 3072 or 4096")
        }
        guard (1...Self.maximumDays).contains(days) else {
            throw ValidationError("--days takes 1 to \(Self.maximumDays)")
        }
        guard name.map({ (1...64).contains($0.count) }) ?? true else {
            throw ValidationError("--name takes 1 to 64 characters")
        }
    }

    /// - Parameter byDefault: the kind of key where none is asked for.
    func profile(byDefault: KeyType, limits: NameLimits = NameLimits()) -> AuthorityProfile {
        let now = Clock.coarseWallSeconds()
        // It begins a day ago, for clients whose clocks are behind.
        return AuthorityProfile(
            key: (type ?? byDefault) == .ec ? .ecdsaP256 : .rsa(bits: bits),
            commonName: name ?? Self.defaultName(now: now),
            validity: now - 86_400...now + Int64(days) * 86_400, constraints: limits)
    }
}

/// What ends a command with a line on standard error.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
