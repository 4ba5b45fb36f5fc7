import ArgumentParser
import Documents
import Gateway
import PinfoldConfiguration

/// `pinfold policy show`.
struct PolicyShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show the policy of the running gateway, or that of a file.",
        discussion: """
            Of a file it shows what it says of itself; `pinfold policy verify` says whether that \
            is true. Of a gateway it shows which policy is in force, since when, and what is wrong \
            with it; exits with 0 if one is in force and nothing is wrong, with 1 otherwise, and \
            with 2 if the gateway cannot be asked or has no policy.
            """)

    @Argument(
        help: ArgumentHelp(
            "A signed policy; without it, the running gateway is asked.", valueName: "file"),
        completion: .file())
    var path: String?

    @OptionGroup var options: AdministrationOptions

    @Flag(help: "Print what the gateway answers, in JSON.")
    var json = false

    func run() throws {
        if let path {
            let envelope = try PolicyFiles.envelope(path)
            let good = envelope.signatures.filter {
                $0.key.verifies($0.bytes, of: PolicyEnvelope.input(envelope.signed))
            }
            let lines = PolicyText.lines(envelope, verified: envelope.signatures.map(\.key))
            writeToStandardOutput(lines.map { $0 + "\n" }.joined())
            for signature in envelope.signatures where !good.contains(signature) {
                writeWarning("\(path): the signature by \(signature.key) is not of this content")
            }
            return
        }
        let answer: RunningGateway.Answer
        do {
            answer = try options.gateway().ask(.get, "/api/v1/status")
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        guard answer.status == 200, let value = answer.value else {
            writeError(answer.problem)
            throw ExitCode(2)
        }
        guard let policy = value["policy"] else {
            writeError("the gateway has no policy: its configuration has no key `policy`")
            throw ExitCode(2)
        }
        writeToStandardOutput(
            json
                ? "\(policy)\n"
                : StatusText.policy(policy).map { $0 + "\n" }.joined())
        if policy["state"]?.text != "inForce" || !policy.list("alarms").isEmpty {
            throw ExitCode(1)
        }
    }
}
