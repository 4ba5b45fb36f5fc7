import ArgumentParser
import CLinux
import Clocks
import Files
import Gateway
import PinfoldConfiguration

/// `pinfold policy sign`.
struct PolicySign: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Sign a policy, or add a signature to a signed one.",
        discussion: """
            Prints the policy with a header that says its serial and when it expires, and with the \
            signature. A file that has a header already is signed as it is: so that several keys \
            sign one policy, sign what was printed with the next key.

            Refuses what no gateway would take: keys that a policy may not have, and with \
            --previous a serial that is not higher than that of the policy before.
            """)

    @Argument(
        help: ArgumentHelp("The policy: YAML, or a signed policy.", valueName: "file"),
        completion: .file())
    var path: String

    @Option(
        help: ArgumentHelp(
            "The private key on Ed25519, in PEM (PKCS #8).", valueName: "file"),
        completion: .file())
    var key: String

    @Option(
        help: ArgumentHelp(
            "The serial, higher than that of every policy before; by default one more than that "
                + "of --previous.", valueName: "number"))
    var serial: String?

    @Option(
        help: ArgumentHelp(
            "When it expires, in UTC, such as 2027-01-31T00:00:00Z.", valueName: "time"))
    var expires: String?

    @Option(help: ArgumentHelp("It expires after so many days.", valueName: "count"))
    var days: Int?

    @Option(
        help: ArgumentHelp("The signed policy that it follows.", valueName: "file"),
        completion: .file())
    var previous: String?

    @Option(
        help: ArgumentHelp(
            "Write the result to this file, which may be the policy itself, and print nothing.",
            valueName: "file"), completion: .file())
    var output: String?

    func validate() throws {
        if expires != nil, days != nil {
            throw ValidationError("--expires and --days mean the same; expected one of them")
        }
        if let days, !(1...3650).contains(days) {
            throw ValidationError("--days must be 1 to 3650")
        }
    }

    func run() throws {
        let signer = try PolicySigner(key)
        let content = try PolicyFiles.read(path)
        let before = try previous.map { try PolicyFiles.envelope($0) }
        let isSigned = content.starts(with: "# pinfold-policy:".utf8)
        let result =
            isSigned ? try added(to: content, by: signer) : try new(content, before, signer)
        let envelope: PolicyEnvelope
        do throws(PolicyFormatError) { envelope = try PolicyEnvelope(result) } catch {
            throw CommandError(PolicyFiles.text(error, path))
        }
        if let before, envelope.serial <= before.serial {
            throw CommandError(
                "\(path): its serial \(envelope.serial) is not higher than \(before.serial), that "
                    + "of the policy before; expected at least \(before.serial + 1)")
        }
        let errors = PolicyDocument.errors(in: Array(envelope.signed), name: path)
        for error in errors { writeError("\(error)") }
        if !errors.isEmpty { throw ExitCode(1) }
        guard let output else { return try writeBytes(result) }
        do throws(FileError) {
            try DurableFile.replace(output, by: result, mode: NewFiles.open)
        } catch {
            throw CommandError("\(error)")
        }
    }

    private func writeBytes(_ bytes: [UInt8]) throws {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw CommandError("\(path): is not UTF-8 text")
        }
        writeToStandardOutput(text)
    }

    /// A policy that has none of its comments yet.
    private func new(
        _ content: [UInt8], _ before: PolicyEnvelope?, _ signer: PolicySigner
    ) throws -> [UInt8] {
        let number: Int64
        if let serial {
            guard let read = PolicyEnvelope.serial(serial) else {
                throw CommandError("--serial \(serial) is not a whole number from 1 to 2^53 - 1")
            }
            number = read
        } else if let before {
            number = before.serial + 1
        } else {
            throw CommandError("the policy has no serial; expected --serial or --previous")
        }
        let end: Int64
        if let expires {
            guard let read = PolicyEnvelope.time(expires) else {
                throw CommandError(
                    "--expires \(expires) is not a time in UTC such as 2027-01-31T00:00:00Z")
            }
            end = read
        } else if let days {
            end = Clock.wallSeconds() + Int64(days) * 86_400
        } else {
            throw CommandError("the policy would never expire; expected --expires or --days")
        }
        guard end > Clock.wallSeconds() else {
            throw CommandError("the policy would have expired already; expected a later time")
        }
        var signed = Array(PolicyEnvelope.header(serial: number, expires: end).utf8)
        signed += content
        if signed.last != UInt8(ascii: "\n") { signed.append(UInt8(ascii: "\n")) }
        return signed + Array(try signer.line(for: signed).utf8)
    }

    /// A policy that has a header, and may have signatures.
    private func added(to content: [UInt8], by signer: PolicySigner) throws -> [UInt8] {
        guard serial == nil, expires == nil, days == nil else {
            throw CommandError(
                "\(path): has a header; --serial, --expires and --days are for a policy without")
        }
        var content = content
        if content.last != UInt8(ascii: "\n") { content.append(UInt8(ascii: "\n")) }
        // With one signature more it has the form that is read.
        guard let known = try? PolicyEnvelope(content) else {
            return content + Array(try signer.line(for: content).utf8)
        }
        for signature in known.signatures {
            guard
                signature.key.verifies(
                    signature.bytes, of: PolicyEnvelope.input(known.signed))
            else {
                throw CommandError(
                    "\(path): the signature by \(signature.key) is not of this content; expected a "
                        + "policy that nobody has changed since")
            }
            guard signature.key != signer.publicKey else {
                throw CommandError("\(path): is signed by this key already")
            }
        }
        return content + Array(try signer.line(for: known.signed).utf8)
    }
}
