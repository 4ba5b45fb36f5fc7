import ArgumentParser
import CLinux
import Files
import Gateway
import PinfoldConfiguration

/// `pinfold policy`: makes, checks and shows signed policies.
struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Make, sign, verify and show policies for gateways with `policy`.",
        subcommands: [
            PolicyKeygen.self, PolicySign.self, PolicyVerify.self, PolicyShow.self,
        ])
}

/// The option of commands that read a configuration together with a policy.
struct PolicyFileOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A signed policy that is read with the configuration, as if it had been fetched.",
            valueName: "file"), completion: .file())
    var policy: String?
}

/// The files of these commands.
enum PolicyFiles {
    /// A file's content, or standard input for `-`.
    static func read(_ path: String) throws -> [UInt8] {
        do throws(FileError) {
            let bytes = try OpenFile(path).contents(most: PolicyEnvelope.maximumBytes)
            guard bytes.count <= PolicyEnvelope.maximumBytes else {
                throw FileError(.read, path, EFBIG)
            }
            return bytes
        } catch {
            throw CommandError("\(path): \(error.reason)")
        }
    }

    /// A signed policy.
    static func envelope(_ path: String) throws -> PolicyEnvelope {
        let bytes = try read(path)
        do throws(PolicyFormatError) { return try PolicyEnvelope(bytes) } catch {
            throw CommandError(text(error, path))
        }
    }

    static func text(_ error: PolicyFormatError, _ path: String) -> String {
        let place = error.line.map { "\(path):\($0)" } ?? path
        return "\(place): \(error.problem); expected \(error.expected)"
    }
}
