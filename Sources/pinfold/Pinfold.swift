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
        main(nil)
    }
}
