import ArgumentParser

/// The version of the program, the one place where it stands.
let pinfoldVersion = "0.1.0"

/// The command line's root: it only names the subcommands.
@main
struct Pinfold: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pinfold",
        abstract: "An HTTP gateway that verifies and pins TLS, caches, and reports.",
        version: pinfoldVersion,
        subcommands: [
            Run.self, Check.self, Trust.self, Reasons.self, Explain.self, Transform.self,
            Pins.self, Authority.self, Get.self, Head.self, Post.self, Put.self, Patch.self,
            Delete.self, Upload.self, DownloadCommand.self, ImageWorkerCommand.self,
        ])

    /// Before anything else is opened.
    static func main() {
        openStandardStreams()
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "help", let unknown = unknownCommand(in: arguments.dropFirst()) {
            exit(
                withError: ValidationError(
                    "there is no command \(unknown); `pinfold help` lists them"))
        }
        main(nil)
    }

    /// The first of the names of a command and those below it that is none; nil: all are. The
    /// parser's own `help` passes over it.
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
