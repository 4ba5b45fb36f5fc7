import ArgumentParser
import PinfoldConfiguration
import PinfoldTLS

/// `pinfold policy keygen`.
struct PolicyKeygen: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Create a private key, and print its public key for `policy.publicKeys`.",
        discussion: """
            The file is in PKCS #8, as `openssl genpkey -algorithm ed25519` writes it; an existing \
            one is never overwritten. With --public, nothing is created: the public key of an \
            existing private key is printed.
            """)

    @Argument(help: ArgumentHelp("The private key.", valueName: "file"), completion: .file())
    var path: String

    @Flag(help: "Print the public key of this private key.")
    var `public` = false

    func run() throws {
        if self.public {
            return writeToStandardOutput("\(try PolicySigner(path).publicKey)\n")
        }
        guard let key = try? Ed25519SigningKey(), let pem = key.pem else {
            throw CommandError("OpenSSL cannot make a key")
        }
        var files = NewFiles()
        do {
            try files.write(pem, to: path, mode: NewFiles.secret)
        } catch {
            throw CommandError("\(error)")
        }
        writeToStandardOutput("\(try PolicySigner(path).publicKey)\n")
    }
}

/// A private key from a file.
struct PolicySigner {
    let publicKey: PolicyPublicKey
    private let key: Ed25519SigningKey

    init(_ path: String) throws {
        let bytes = try PolicyFiles.read(path)
        do throws(Ed25519SigningKey.KeyError) {
            key = try Ed25519SigningKey(pem: bytes)
        } catch {
            let problem =
                switch error {
                case .unreadable: "has no private key that can be read"
                case .otherKind: "has a private key of another kind"
                case .library: "cannot be read"
                }
            throw CommandError(
                "\(path): \(problem); expected a private key on Ed25519 in PEM, without a password")
        }
        guard let publicKey = try? PolicyPublicKey(bytes: key.publicKey) else {
            throw CommandError("\(path): its public key cannot be used")
        }
        self.publicKey = publicKey
    }

    /// The line with the signature of a policy.
    func line(for signed: some Sequence<UInt8>) throws -> String {
        guard let bytes = key.signature(of: PolicyEnvelope.input(signed)) else {
            throw CommandError("OpenSSL cannot sign")
        }
        return PolicyEnvelope.line(PolicyEnvelope.Signature(key: publicKey, bytes: bytes))
    }
}
