import ArgumentParser
import Gateway
import PinfoldConfiguration

/// `pinfold replay`: judges the requests of access logs under a configuration.
struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Judge the requests of access logs under a configuration.",
        discussion: """
            Reads access logs of the gateway, in either format and also compressed by gzip, and \
            says of each request what would become of it under a configuration: which entry of \
            hosts applies, what the access rules, the destinations, the user and the way of the \
            request decide, and whether the cache is used. It is compared with what another \
            configuration decides or, without --against, with what the log says. The answers come \
            from the same code that handles requests. Nothing is resolved and nothing is sent.

            Exits with 0 if no request would fare differently, with 1 if one would, and with 2 if \
            there is no answer: a log cannot be read, a configuration is invalid, or no line could \
            be judged.
            """)

    @Option(
        name: .long, parsing: .upToNextOption,
        help: ArgumentHelp(
            "The access logs, also compressed by gzip; - is standard input; repeatable.",
            valueName: "file"), completion: .file())
    var log: [String]

    @Option(
        help: ArgumentHelp("The configuration to try out.", valueName: "file"),
        completion: .file())
    var config: String

    @Option(
        help: ArgumentHelp(
            "A signed policy that is read with the configuration to try out.", valueName: "file"),
        completion: .file())
    var policy: String?

    @Option(
        help: ArgumentHelp(
            "The configuration to compare with, and not the log.", valueName: "file"),
        completion: .file())
    var against: String?

    @Option(
        help: ArgumentHelp(
            """
            The keys that servers were seen to have: the gateway's record (observed-pins.sqlite), \
            what `pinfold pin observed --json` prints, or JSON: \
            {"HOST": [{"spki": ["BASE64", …]}]}. Without this option, pins are not judged.
            """, valueName: "file"), completion: .file())
    var observed: String?

    @Option(help: ArgumentHelp("How many requests to show of each change.", valueName: "count"))
    var examples = 3

    @Option(help: "The format of the output: text or json.")
    var format = OutputFormat.text

    func validate() throws {
        guard (0...1000).contains(examples) else {
            throw ValidationError("--examples must be 0 to 1000")
        }
        if log.isEmpty { throw ValidationError("--log needs a file") }
    }

    func run() throws {
        let report = try answerOrExit(replay)
        writeToStandardOutput(format == .json ? report.json + "\n" : report.text)
        if report.summary.judged == 0 {
            writeError("no line of the logs could be judged")
            throw ExitCode(2)
        }
        if report.summary.changed > 0 { throw ExitCode(1) }
    }

    private func replay() throws -> ReplayReport {
        let new = try Self.load(config, policy)
        let old = try against.map { try Self.load($0) }
        let servers = try observed.map { try ObservedServers(file: $0) }
        var replayer = try Replayer(
            new, against: old, observed: servers, examples: examples)
        for path in log {
            try LogInput(path: path).forEachLine { try replayer.take($0) }
        }
        return ReplayReport(
            summary: replayer.summary, new: config, old: against, files: log,
            observedHosts: servers?.count)
    }

    private static func load(
        _ file: String, _ policy: String? = nil
    ) throws -> ConfigurationSnapshot {
        var source = ConfigurationSource(file: file, overlay: CommandLineOverlay())
        source.policy = policy
        return try source.load().snapshot
    }
}

/// The formats of what commands print.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
    case text, json
}
