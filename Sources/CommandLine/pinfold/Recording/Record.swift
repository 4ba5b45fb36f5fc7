import ArgumentParser
import Gateway

/// `pinfold record`: records the exchanges of a running gateway.
struct Record: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Record what passes through the running gateway, as an HTTP Archive (HAR).",
        discussion: """
            The file can be opened in the developer tools of browsers and in mitmproxy. It has \
            every exchange that ends while the command runs, also those that were refused, with \
            the reason. The command ends at Ctrl-C or a limit; the file is complete at any time. \
            The values of Authorization, Cookie and the like are masked. Without the token, a \
            certificate or the Unix socket there are no heads, queries and bodies. Exits with 1 \
            if the file cannot be written, and with 2 if the gateway cannot be asked, does not \
            record, or ends: the file then has what came before.
            """)

    @Argument(
        help: ArgumentHelp(
            "The file to write, which must not exist; `-` is standard output.", valueName: "file"),
        completion: .file())
    var file: String

    @Flag(help: "Replace the file if it exists.")
    var overwrite = false

    @Option(
        help: ArgumentHelp(
            "Only what is for this host: example.com, *.example.com, perhaps with :PORT.",
            valueName: "host"))
    var host: String?

    @Option(
        help: ArgumentHelp("Only what this address or network asks for.", valueName: "network"))
    var client: String?

    @Option(help: ArgumentHelp("Only requests with this method.", valueName: "method"))
    var method: String?

    @Option(
        help: ArgumentHelp(
            "Only what is answered with this status: 502, or 5xx.", valueName: "status"))
    var status: String?

    @Option(
        help: ArgumentHelp("Only what is refused or fails for this reason.", valueName: "reason"))
    var reason: String?

    @Flag(help: "Only what is refused or fails.")
    var failed = false

    @Option(
        help: ArgumentHelp(
            "Record bodies, of each at most this size: 64KiB. At most 4MiB.", valueName: "size"))
    var bodies: String?

    @Flag(
        help: """
            Do not mask the values of Authorization, Cookie and the like. Only where \
            admin.recordSecrets allows it.
            """)
    var secrets = false

    @Option(help: ArgumentHelp("End after this time: 30s, 5m.", valueName: "time"))
    var duration: String?

    @Option(help: ArgumentHelp("End after as many exchanges.", valueName: "number"))
    var count: Int64?

    @Option(
        help: ArgumentHelp(
            "End before the file is larger than this. (default: 1GiB)", valueName: "size"))
    var size: String?

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var silent = false

    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        if let bodies, Quantity.bytes(bodies) == nil {
            throw ValidationError("--bodies \(bodies): expected a size, such as 64KiB")
        }
        if let size, (Quantity.bytes(size) ?? 0) < 1024 {
            throw ValidationError("--size \(size): expected at least 1KiB, such as 100MiB")
        }
        if let duration, (Quantity.milliseconds(duration) ?? 0) <= 0 {
            throw ValidationError("--duration \(duration): expected a time, such as 30s")
        }
        if let count, count < 1 {
            throw ValidationError("--count \(count): expected a number of at least 1")
        }
    }

    /// What is asked of the API.
    private var target: String {
        let values: [(String, String?)] = [
            ("host", host), ("client", client), ("method", method), ("status", status),
            ("reason", reason), ("failed", failed ? "true" : nil),
            ("bodies", bodies.flatMap { Quantity.bytes($0) }.map(String.init)),
            ("secrets", secrets ? "true" : nil),
        ]
        let query = values.compactMap { name, value in
            value.map { "\(name)=\(queryEncoded($0))" }
        }
        return "/api/v1/record" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    func run() throws {
        let gateway = try options.gatewayOrExit()
        let session = RecordingSession(
            file, replaces: overwrite,
            RecordingSession.Limits(
                duration: duration.flatMap { Quantity.milliseconds($0) }, count: count,
                size: Int64(size.flatMap { Quantity.bytes($0) } ?? 1 << 30)),
            isSilent: silent)
        let outcome = try session.run(gateway, target)
        let (count, dropped) = session.figures
        if !silent, count > 0 || dropped > 0 {
            writeToStandardError("\(count) \(count == 1 ? "exchange" : "exchanges") recorded\n")
        }
        if dropped > 0 {
            writeWarning("\(dropped) more are not in the file: they came too fast")
        }
        switch outcome {
        case .complete: return
        case .notWritten(let problem):
            writeError(problem)
            throw ExitCode(1)
        case .brokenOff(let problem):
            writeError(problem)
            throw ExitCode(2)
        }
    }
}
