import ArgumentParser
import Clocks
import Documents

/// `pinfold cache ls`: what is stored.
struct CacheList: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ls",
        abstract: "List what is stored.",
        discussion: """
            One line for each stored response: its status, size, age, how often it was used, where \
            it is, how its origin was verified, and its URL. All of the cache is looked at, page \
            by page; no request waits for that. If what is on disk cannot be read, lists what is \
            in memory, says why, and exits with 1. Exits with 2 if the gateway cannot be asked or \
            does not answer.
            """)

    /// By what entries are ordered.
    enum Order: String, CaseIterable, ExpressibleByArgument {
        case url, size, age, hits, used
    }

    @Argument(
        help: ArgumentHelp(
            "Only of these hosts: example.com, *.example.com or **.example.com, perhaps with "
                + ":PORT.", valueName: "host"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            """
            By what they are ordered: url; size, hits (the largest first); age (the oldest \
            first); used (the longest unused first).
            """, valueName: "order"))
    var order = Order.url

    @Flag(help: "Order them the other way round.")
    var reverse = false

    @Option(help: ArgumentHelp("Show this many at most; 0: all.", valueName: "count"))
    var limit = 100

    @Option(
        help: ArgumentHelp(
            "Only those whose origin was verified like this: a part of what is shown.",
            valueName: "text"))
    var trust: String?

    @Flag(help: "Only what is in memory, whatever the state of the disk.")
    var memory = false

    @Flag(help: "Print one JSON object on each line.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard limit >= 0 else { throw ValidationError("--limit must not be negative") }
    }

    func run() throws {
        var pages = EntryPages(
            gateway: try options.gatewayOrExit(), host: host, inMemoryOnly: memory)
        do {
            show(try list(pages))
        } catch let error as DiskUnreadableError {
            pages.inMemoryOnly = true
            show(try list(pages))
            writeError("only what is in memory is listed: \(error.problem)")
            throw ExitCode(1)
        }
    }

    /// What is listed.
    private struct Listed {
        var kept: [(row: EntryRow, value: DocumentValue)] = []
        var count: Int64 = 0
        var bytes: Int64 = 0
    }

    private func list(_ pages: EntryPages) throws -> Listed {
        var listed = Listed()
        try pages.visit { value in
            let row = EntryRow(value)
            if let trust, !(row.trust ?? "").contains(trust) { return }
            listed.count += 1
            listed.bytes += row.bytes ?? 0
            listed.kept.append((row, value))
            // Only the first ones are kept, however many there are.
            if limit > 0, listed.kept.count >= max(10_000, limit * 4) { sort(&listed.kept) }
        }
        sort(&listed.kept)
        return listed
    }

    private func show(_ listed: Listed) {
        let (kept, count) = (listed.kept, listed.count)
        if json {
            for entry in kept { writeToStandardOutput("\(entry.value)\n") }
            return
        }
        writeToStandardOutput(Self.table(kept.map(\.row), now: Clock.wallMilliseconds() / 1000))
        let shown = kept.count < count ? ", of which \(kept.count) are shown" : ""
        writeToStandardOutput(
            "\(count) \(count == 1 ? "response" : "responses"), "
                + "\(ProgressText.size(listed.bytes))\(shown)\n"
        )
    }

    private func sort(_ kept: inout [(row: EntryRow, value: DocumentValue)]) {
        kept.sort { one, other in
            let (first, second) = reverse ? (other.row, one.row) : (one.row, other.row)
            return switch order {
            case .url: first.url < second.url
            case .size: (first.bytes ?? 0, second.url) > (second.bytes ?? 0, first.url)
            case .hits: (first.hits, second.url) > (second.hits, first.url)
            case .age: (first.stored ?? 0, first.url) < (second.stored ?? 0, second.url)
            case .used: (first.lastUsed ?? 0, first.url) < (second.lastUsed ?? 0, second.url)
            }
        }
        if limit > 0, kept.count > limit { kept.removeLast(kept.count - limit) }
    }

    static func table(_ rows: [EntryRow], now: Int64) -> String {
        var table = TableText(
            ["STATUS", "SIZE", "AGE", "FRESH FOR", "HITS", "TIER", "TRUST", "URL"],
            rightAligned: [1, 2, 3, 4])
        for row in rows {
            let fresh = row.expires.map { $0 - now } ?? 0
            table.add([
                "\(row.status)", row.bytes.map { ProgressText.size($0) } ?? "?",
                row.stored.map { TimeText.duration(max(0, now - $0)) } ?? "?",
                fresh > 0 ? TimeText.duration(fresh) : "stale", "\(row.hits)", row.tiers,
                row.trust ?? "?",
                (row.method == "GET" ? "" : row.method + " ") + row.url
                    + (row.vary.map { " (\($0))" } ?? ""),
            ])
        }
        return table.text
    }
}
