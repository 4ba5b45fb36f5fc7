import ArgumentParser
import CLinux
import Imaging

/// `pinfold image-worker`: the process that decodes images for a gateway, which starts it with a
/// socket as standard input and output. Nothing for people.
struct ImageWorkerCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "image-worker", abstract: "Decode images for a gateway.",
        shouldDisplay: false)

    @Option(help: "Bytes of memory that it may take.")
    var memory: UInt64

    @Option(help: "Seconds that an image may take.")
    var seconds: UInt32

    func run() throws {
        let code = ImageWorker.run(memory: memory, seconds: seconds)
        if code != 0 { throw ExitCode(code) }
    }
}
