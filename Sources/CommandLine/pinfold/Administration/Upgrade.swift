import ArgumentParser
import Documents

/// `pinfold upgrade`: has a running gateway hand over to a new process.
struct Upgrade: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Replace the running gateway by a new process, without losing a connection.",
        discussion: """
            Does what SIGUSR2 does: the gateway starts its program again, by the path that it was \
            started by, with the same arguments. The new process reads the configuration, takes \
            over the listening sockets, and serves; the old one finishes what is in progress, for \
            at most `timeouts.grace`. Waits until the new process serves, and prints its number. \
            If it cannot serve, says why and exits with 1: the old process goes on. Exits with 2 \
            if the gateway cannot be asked or does not answer.
            """)

    @OptionGroup var options: AdministrationOptions

    func run() throws {
        let answer: RunningGateway.Answer
        do {
            // The gateway itself gives up after two minutes.
            let gateway = try options.gateway(leastTimeout: 130_000)
            answer = try gateway.ask(.post, "/api/v1/upgrade")
        } catch {
            writeError("\(error)")
            throw ExitCode(2)
        }
        switch answer.status {
        case 200 where answer.value?["pid"] != nil:
            let version = answer.value?["version"]?.text ?? ""
            writeToStandardOutput(
                "process \(answer.value?["pid"]?.count ?? 0) serves, version \(version)\n")
        case 500:
            writeError(answer.problem)
            throw ExitCode(1)
        default:
            writeError(answer.problem)
            throw ExitCode(2)
        }
    }
}
