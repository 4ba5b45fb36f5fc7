import ArgumentParser
import Documents

/// `pinfold cache show`: what is stored for a URL.
struct CacheShow: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show what is stored for a URL, and whether a request would get it now.",
        discussion: """
            For each stored response: its head, its age, how long it is fresh, its tags, how its \
            origin was verified, and what would become of a GET for the URL with the fields given \
            by -H: whether it would be answered with it, and why or why not. To look does not \
            count as a use. If what is on disk cannot be read, shows what is in memory, and says \
            why. Exits with 0 if something is stored, with 1 if nothing is, and with 2 if the \
            gateway cannot be asked, does not answer, or cannot read what is on disk, and nothing \
            is in memory.
            """)

    @Argument(help: ArgumentHelp("The URL, as clients request it.", valueName: "url"))
    var url: String

    @Option(
        name: [.customShort("H"), .customLong("header")],
        help: ArgumentHelp(
            "A field of the request that is judged; repeatable.", valueName: "name: value"))
    var headers: [String] = []

    @Flag(help: "Print the answer of the gateway as it is, in JSON.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    func run() throws {
        var path = "/api/v1/cache/entry?url=\(queryEncoded(url))"
        for header in headers { path += "&field=\(queryEncoded(header))" }
        let gateway = try options.gatewayOrExit()
        var missing: String?
        let value: DocumentValue
        do {
            value = try Self.value(path, of: gateway)
        } catch let error as DiskUnreadableError {
            missing = error.problem
            value = try Self.value(path + "&tier=memory", of: gateway)
        }
        let variants = value.list("variants")
        if let missing {
            guard !variants.isEmpty else {
                writeError("nothing is in memory for \(url), and \(missing)")
                throw ExitCode(2)
            }
            writeWarning("only what is in memory is shown: \(missing)")
        }
        if json {
            writeToStandardOutput("\(value)\n")
        } else if variants.isEmpty {
            writeToStandardOutput("nothing is stored for \(url)\n")
        } else {
            writeToStandardOutput(variants.map { Self.text($0) }.joined(separator: "\n"))
        }
        if variants.isEmpty { throw ExitCode(1) }
    }

    private static func value(
        _ path: String, of gateway: RunningGateway
    ) throws -> DocumentValue {
        guard let value = try gateway.look(path).value else {
            writeError("what the gateway sends says nothing of a URL")
            throw ExitCode(2)
        }
        return value
    }

    static func text(_ value: DocumentValue) -> String {
        func row(_ name: String, _ text: String) -> String {
            name + String(repeating: " ", count: max(1, 10 - name.count)) + text + "\n"
        }
        let route = value["route"]?.text.map { " (\($0))" } ?? ""
        var text = "\(value["method"]?.text ?? "GET") \(value["url"]?.text ?? "")\(route)\n"
        text += row("answer", Self.answer(value))
        let fresh = value["freshFor"]?.count ?? 0
        let stale = value["staleFor"]?.count ?? 0
        text += row(
            "age",
            TimeText.duration(value["age"]?.count ?? 0) + ", "
                + (fresh > 0
                    ? "fresh for \(TimeText.duration(fresh))"
                    : "stale since \(TimeText.duration(stale))")
                + " (\(value["lifetimeFrom"]?.text ?? "none"))")
        text += row("trust", value["trust"]?.text ?? "not known")
        text += row("found in", value["tier"]?.text ?? "")
        let tags = value.words("tags")
        if !tags.isEmpty { text += row("tags", tags.joined(separator: " ")) }
        let vary = value.words("vary")
        if !vary.isEmpty { text += row("selected", "by " + vary.joined(separator: ", ")) }
        text += row("content", value["bytes"].map { ProgressText.size($0.count) } ?? "not known")
        text += row("status", "\(value["status"]?.count ?? 0)")
        for line in value.words("fields") { text += "    \(TableText.printable(line))\n" }
        return text
    }

    private static func answer(_ value: DocumentValue) -> String {
        let reason = value["reason"]?.text
        return switch value["answer"]?.text {
        case "used": "a GET now is answered with it"
        case "used-stale": "a GET now is answered with it, although it is stale (\(reason ?? ""))"
        case "confirmed": "a GET now asks the server whether it is still valid (\(reason ?? ""))"
        default: "a GET now is sent to the server (\(reason ?? "nothing matches"))"
        }
    }
}
