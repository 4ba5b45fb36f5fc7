import ArgumentParser
import Clocks
import Documents
import Gateway
import HTTPCore
import PinfoldConfiguration

/// `pinfold fleet rollback`.
struct FleetRollback: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollback",
        abstract: "Publish the policy before the newest one again, with a higher serial.",
        discussion: """
            Takes the policy from the gateway that is asked, which keeps the last eight, and \
            verifies that this key has signed it: nothing else is signed. The new one expires when \
            the newest does, unless --days says otherwise. Prints which gateways have taken it; \
            exits as `pinfold fleet publish` does.
            """)

    @Option(
        help: ArgumentHelp(
            "The private key that signs policies: on Ed25519, in PEM (PKCS #8).",
            valueName: "file"), completion: .file())
    var policyKey: String

    @Option(
        name: .customLong("to"),
        help: ArgumentHelp(
            "Publish the policy with this serial again; by default, the one before the newest.",
            valueName: "serial"))
    var target: String?

    @Option(help: ArgumentHelp("It expires after so many days.", valueName: "count"))
    var days: Int?

    @OptionGroup var publishing: PublishingOptions
    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        if let target, PolicyEnvelope.serial(target) == nil {
            throw ValidationError("--to must be a whole number from 1 to 2^53 - 1")
        }
        if let days, !(1...3650).contains(days) {
            throw ValidationError("--days must be 1 to 3650")
        }
    }

    func run() throws {
        let signer = try PolicySigner(policyKey)
        let gateway = try options.gatewayOrExit()
        let known = try gateway.value(.get, "/api/v1/fleet/policy")
        guard let number = known["newest"]?.count else {
            writeError("the gateway knows no policy that its keys have signed")
            throw ExitCode(1)
        }
        let newest = try envelope(number, from: gateway, signedBy: signer.publicKey)
        let before = try former(than: newest.serial, known)
        let chosen = try envelope(before, from: gateway, signedBy: signer.publicKey)
        let now = Clock.wallSeconds()
        let expires = days.map { now + Int64($0) * 86_400 } ?? newest.expires
        guard expires > now else {
            throw CommandError("the newest policy has expired; expected --days")
        }
        guard newest.serial < PolicyEnvelope.serials.upperBound else {
            throw CommandError("there is no serial higher than \(newest.serial)")
        }
        let signed = chosen.again(serial: newest.serial + 1, expires: expires)
        let bytes = signed + Array(try signer.line(for: signed).utf8)
        writeToStandardOutput("serial \(chosen.serial) is signed again as \(newest.serial + 1)\n")
        try publishing.publish(bytes, by: gateway)
    }

    /// The serial of the policy that is to be published again.
    private func former(than newest: Int64, _ known: DocumentValue) throws -> Int64 {
        let serials = known.list("known").compactMap { $0["serial"]?.count }
        if let target {
            guard let serial = PolicyEnvelope.serial(target), serials.contains(serial) else {
                throw CommandError(
                    "serial \(target) is not kept by this gateway; expected one of "
                        + serials.map { "\($0)" }.joined(separator: ", "))
            }
            return serial
        }
        guard let before = serials.filter({ $0 < newest }).max() else {
            throw CommandError(
                "this gateway keeps no policy before serial \(newest); ask another one, or sign "
                    + "and publish a file")
        }
        return before
    }

    /// A policy that the gateway has, and that the operator's own key has signed: whatever else a
    /// gateway answers must not be signed.
    private func envelope(
        _ serial: Int64, from gateway: RunningGateway, signedBy key: PolicyPublicKey
    ) throws -> PolicyEnvelope {
        let answer = try gateway.ask(.get, "/api/v1/fleet/policy/\(serial)")
        guard answer.status == 200 else {
            writeError(answer.problem)
            throw ExitCode(1)
        }
        let envelope: PolicyEnvelope
        do throws(PolicyFormatError) { envelope = try PolicyEnvelope(answer.body) } catch {
            throw CommandError(PolicyFiles.text(error, "serial \(serial)"))
        }
        do throws(PolicySignatureError) { _ = try envelope.signers(among: [key]) } catch {
            throw CommandError(
                "serial \(serial) is not signed by \(key); expected the key that has signed it")
        }
        guard envelope.serial == serial else {
            throw CommandError("the gateway has sent serial \(envelope.serial) for \(serial)")
        }
        return envelope
    }
}
