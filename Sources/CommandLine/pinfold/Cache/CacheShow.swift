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
            by -H: whether it would be answered with it, and why or why not. Exits with 0 if \
            something is stored, with 1 if nothing is, and with 2 if the gateway cannot be asked \
            or does not answer.
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
        let value = try options.gatewayOrExit().value(.get, path)
        let variants = value.list("variants")
        if json {
            writeToStandardOutput("\(value)\n")
        } else if variants.isEmpty {
            writeToStandardOutput("nothing is stored for \(url)\n")
        } else {
            writeToStandardOutput(variants.map { Self.text($0) }.joined(separator: "\n"))
        }
        if variants.isEmpty { throw ExitCode(1) }
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
