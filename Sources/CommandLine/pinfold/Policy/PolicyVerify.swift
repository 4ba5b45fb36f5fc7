import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinfoldConfiguration

/// `pinfold policy verify`.
struct PolicyVerify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Say whether a gateway would take a policy.",
        discussion: """
            Verifies the signatures by the given keys or, with --config, by those of the \
            configuration, and then also whether the policy only narrows that configuration. \
            Exits with 0 if it would be taken, and with 1 if not.
            """)

    @Argument(help: ArgumentHelp("The signed policy.", valueName: "file"), completion: .file())
    var path: String

    @Option(
        help: ArgumentHelp(
            "A public key, as `pinfold policy keygen` prints it; repeatable.", valueName: "key"))
    var publicKey: [String] = []

    @Option(
        help: ArgumentHelp("The configuration of the gateway.", valueName: "file"),
        completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp("The signed policy that it follows.", valueName: "file"),
        completion: .file())
    var previous: String?

    func validate() throws {
        guard publicKey.isEmpty != (config == nil) else {
            throw ValidationError("expected either --public-key or --config")
        }
    }

    func run() throws {
        let bytes = try PolicyFiles.read(path)
        let before = try previous.map { try PolicyFiles.envelope($0) }
        var keys = try publicKey.map { text in
            guard let key = PolicyPublicKey(text) else {
                throw CommandError("--public-key \(text) is not a public key on Ed25519")
            }
            return key
        }
        var loaded: LoadedConfiguration?
        if let config {
            var source = ConfigurationSource(file: config, overlay: CommandLineOverlay())
            source.policy = path
            do throws(ConfigurationErrors) { loaded = try source.load() } catch {
                error.write()
                throw ExitCode(1)
            }
            keys = loaded?.snapshot.policy?.publicKeys ?? []
        }
        switch PolicyDecision.of(bytes, after: before, keys: keys, now: Clock.wallSeconds()) {
        case .refuse(let refusal):
            writeError("\(path): \(refusal.text)")
            throw ExitCode(1)
        case .take, .unchanged, .signedAnew: break
        }
        let envelope = try PolicyFiles.envelope(path)
        let signers = (try? envelope.signers(among: keys)) ?? []
        for warning in loaded?.warnings ?? [] { writeWarning("\(warning)") }
        writeToStandardOutput(
            PolicyText.lines(envelope, verified: signers).map { $0 + "\n" }.joined())
    }
}

/// A policy for people.
enum PolicyText {
    /// - Parameter verified: the keys whose signatures are known to be good.
    static func lines(
        _ envelope: PolicyEnvelope, verified: [PolicyPublicKey]
    ) -> [String] {
        let now = Clock.wallSeconds()
        let hasExpired = now >= envelope.expires
        return [
            "serial      \(envelope.serial)",
            "expires     \(CivilDate.text(secondsSince1970: envelope.expires))"
                + (hasExpired ? ", which is over" : ""),
        ]
            + envelope.signatures.map { signature in
                let isGood = verified.contains(signature.key)
                return "signed by   \(signature.key)" + (isGood ? "" : " (not a key given here)")
            }
    }
}
