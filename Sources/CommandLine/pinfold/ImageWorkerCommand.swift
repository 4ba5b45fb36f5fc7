import ArgumentParser
import CLinux
import Imaging

/// `pinfold image-worker`: the process that decodes images for a gateway, which starts it with a
/// socket as standard input and output. Not meant to be run by hand.
struct ImageWorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "image-worker", abstract: "Decode images for a gateway.",
        shouldDisplay: false)

    @Option(help: "The memory limit in bytes.")
    var memory: UInt64

    @Option(help: "The time limit per image in seconds.")
    var seconds: UInt32

    func run() throws {
        let code = ImageWorker.run(memory: memory, seconds: seconds)
        if code != 0 { throw ExitCode(code) }
    }
}
