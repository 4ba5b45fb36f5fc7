import ArgumentParser
import Documents

/// `pinfold cache stats`: how much is stored.
struct CacheStats: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats",
        abstract: "Show how much is stored, by host with --hosts, and what purges have done.",
        discussion: """
            Exits with 2 if the gateway cannot be asked or does not answer, and with --hosts if it \
            cannot read all that is stored.
            """)

    @Flag(help: "Add up responses, bytes and hits for each host, the largest first.")
    var hosts = false

    @Flag(help: "Add up only what is in memory, whatever the state of the disk.")
    var memory = false

    @Option(help: ArgumentHelp("Show this many hosts at most; 0: all.", valueName: "count"))
    var limit = 20

    @Flag(help: "Print the figures in JSON.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    private struct Sum {
        var entries: Int64 = 0
        var bytes: Int64 = 0
        var hits: Int64 = 0
    }

    func validate() throws {
        if memory, !hosts { throw ValidationError("--memory goes with --hosts") }
    }

    func run() throws {
        let gateway = try options.gatewayOrExit()
        guard hosts else {
            let value = try gateway.value(.get, "/api/v1/cache/stats")
            return writeToStandardOutput(json ? "\(value)\n" : Self.text(value))
        }
        var sums: [String: Sum] = [:]
        try EntryPages(gateway: gateway, inMemoryOnly: memory).visitAll { value in
            let row = EntryRow(value)
            sums[row.host, default: Sum()].entries += 1
            sums[row.host, default: Sum()].bytes += row.bytes ?? 0
            sums[row.host, default: Sum()].hits += row.hits
        }
        let ordered = sums.sorted { ($0.value.bytes, $1.key) > ($1.value.bytes, $0.key) }
        let shown = limit > 0 ? Array(ordered.prefix(limit)) : ordered
        writeToStandardOutput(json ? Self.json(shown) : Self.table(shown))
    }

    private static func json(_ sums: [(key: String, value: Sum)]) -> String {
        sums.map { host, sum in
            let value = DocumentValue.dictionary([
                "host": .string(host), "entries": .number(DocumentNumber(sum.entries)),
                "bytes": .number(DocumentNumber(sum.bytes)),
                "hits": .number(DocumentNumber(sum.hits)),
            ])
            return "\(value)\n"
        }.joined()
    }

    private static func table(_ sums: [(key: String, value: Sum)]) -> String {
        var table = TableText(
            ["RESPONSES", "SIZE", "HITS", "HOST"], rightAligned: [0, 1, 2])
        for (host, sum) in sums {
            table.add([
                "\(sum.entries)", ProgressText.size(sum.bytes), "\(sum.hits)", host,
            ])
        }
        return table.text
    }

    private static func disk(_ value: DocumentValue) -> String {
        func number(_ name: String) -> Int64 { value[name]?.count ?? 0 }
        if let fault = value["diskFault"]?.text { return "not in use: \(fault)" }
        switch value["diskState"]?.text {
        case "opening": return "being opened"
        case "handed-over": return "passed to another process"
        default: break
        }
        return "\(number("diskEntries")) responses, \(ProgressText.size(number("diskBytes"))) in "
            + "files of \(ProgressText.size(number("diskFileBytes"))), "
            + "\(number("diskEvictions")) evicted"
    }

    private static func shared(_ value: DocumentValue) -> String {
        func number(_ name: String) -> Int64 { value[name]?.count ?? 0 }
        let state =
            value["on"] == .boolean(true)
            ? "\(number("members")) gateways" : "not in use: \(value["reason"]?.text ?? "opening")"
        return "\(state), \(number("hits")) hits, \(number("misses")) misses, "
            + "\(number("timeouts")) too slow, \(number("stores")) stored"
    }

    static func text(_ value: DocumentValue) -> String {
        func number(_ name: String) -> Int64 { value[name]?.count ?? 0 }
        let purges = value["purges"] ?? .null
        let kinds = ["urls", "prefixes", "hosts", "tags", "everything"].map { name in
            "\(purges[name]?.count ?? 0) of \(name)"
        }
        return """
            memory  \(number("memoryEntries")) responses, \
            \(ProgressText.size(number("memoryBytes"))), \(number("memoryEvictions")) evicted
            disk    \(disk(value))
            \(value["shared"].map { "shared  \(shared($0))\n" } ?? "")\
            purges  \(kinds.joined(separator: ", ")); \(purges["soft"]?.count ?? 0) soft, \
            \(purges["failed"]?.count ?? 0) failed

            """
    }
}
