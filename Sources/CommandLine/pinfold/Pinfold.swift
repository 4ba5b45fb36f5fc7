import ArgumentParser

/// The program's version. It is declared here and nowhere else.
let pinfoldVersion = "0.1.0"

/// The root command, which only lists the subcommands.
@main
struct Pinfold: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pinfold",
        abstract: "An HTTP gateway that verifies and pins TLS, caches, and reports.",
        version: Revision.versionAndCommit,
        subcommands: [
            Run.self, Status.self, Reload.self, Upgrade.self, Record.self, CacheCommand.self,
            Check.self,
            Trust.self, Reasons.self,
            Explain.self, Diff.self, Replay.self,
            Transform.self,
            PolicyCommand.self, FleetCommand.self, Pins.self, AuthorityCommand.self,
            UserCommand.self, Get.self, Head.self, Post.self,
            Put.self, Patch.self,
            Delete.self, Upload.self, DownloadCommand.self, ImageWorkerCommand.self,
        ])

    /// Opens the standard streams before anything else is opened, then runs the command.
    static func main() {
        openStandardStreams()
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "help", let unknown = unknownCommand(in: arguments.dropFirst()) {
            exit(
                withError: ValidationError(
                    "unknown command \(unknown); `pinfold help` lists the commands"))
        }
        main(nil)
    }

    /// The first name in a path of subcommands that is unknown, or `nil` if all are known. The
    /// parser's own `help` ignores unknown names.
    private static func unknownCommand(in names: ArraySlice<String>) -> String? {
        var command: any ParsableCommand.Type = Pinfold.self
        for name in names where !name.hasPrefix("-") {
            let below = command.configuration.subcommands
            guard let next = below.first(where: { $0._commandName == name }) else { return name }
            command = next
        }
        return nil
    }
}
