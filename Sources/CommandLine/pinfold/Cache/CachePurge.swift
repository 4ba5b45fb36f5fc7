import ArgumentParser
import CLinux
import Documents

/// `pinfold cache purge`: removes stored responses, or makes them stale.
struct CachePurge: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Purge stored responses.",
        discussion: """
            When it returns, no request that begins later is answered with what was purged, on \
            whatever worker, also after a restart or a crash; what is on disk is removed \
            afterwards, which --wait waits for. If the cache is shared with other gateways, they \
            have a second to carry it out, and those that have are named. Exits with 1 if the \
            gateway refuses the purge, or cannot count what --dry-run asks for, and with 2 if it \
            cannot be asked or does not answer.
            """)

    @Argument(help: ArgumentHelp("URLs, with all their variants.", valueName: "url"))
    var urls: [String] = []

    @Option(
        help: ArgumentHelp(
            "All URLs that begin like this one: http://HOST/ and what follows; repeatable.",
            valueName: "url"))
    var prefix: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            All URLs of a host: example.com, *.example.com or **.example.com, with :PORT for \
            that port only; repeatable.
            """, valueName: "host"))
    var host: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            All responses with this tag, a member of Surrogate-Key, Cache-Tag or Cache-Groups; \
            repeatable.
            """, valueName: "tag"))
    var tag: [String] = []

    @Flag(help: "Everything that is stored.")
    var everything = false

    @Flag(
        help: ArgumentHelp(
            """
            Make it stale instead of removing it: it is confirmed by its server before it is used, \
            or used where a stale response may be.
            """))
    var soft = false

    @Flag(help: "Count what would be purged, and purge nothing.")
    var dryRun = false

    @Flag(help: "Wait until what was purged is removed from the disk as well.")
    var wait = false

    @Flag(help: "Print the answer of the gateway as it is, in JSON.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    func validate() throws {
        guard everything || !(urls + prefix + host + tag).isEmpty else {
            throw ValidationError("expected URLs, --prefix, --host, --tag or --everything")
        }
        if dryRun, wait { throw ValidationError("--wait does not go with --dry-run") }
    }

    func run() throws {
        let gateway = try options.gatewayOrExit()
        var value = try gateway.value(
            .post, "/api/v1/cache/purge", content: .init(bytes: Array("\(order)".utf8)),
            failing: 1)
        let fleet = value["fleet"]
        if wait, let id = value["id"]?.count {
            while value["complete"] != .boolean(true) {
                usleep(100_000)
                value = try gateway.value(.get, "/api/v1/cache/purge?id=\(id)")
            }
        }
        writeToStandardOutput(
            json ? "\(value)\n" : Self.text(value) + Self.text(ofFleet: fleet))
    }

    private var order: DocumentValue {
        func texts(_ texts: [String]) -> DocumentValue { .array(texts.map { .string($0) }) }
        return .dictionary([
            "urls": texts(urls), "prefixes": texts(prefix), "hosts": texts(host),
            "tags": texts(tag), "everything": .boolean(everything), "soft": .boolean(soft),
            "dryRun": .boolean(dryRun),
        ])
    }

    private static func text(_ value: DocumentValue) -> String {
        let (memory, disk) = (value["memoryEntries"]?.count ?? 0, value["diskEntries"]?.count ?? 0)
        if value["dryRun"] == .boolean(true) {
            return "would purge \(counted(memory)) in memory, \(disk) on disk\n"
        }
        let rest =
            value["complete"] == .boolean(true) ? "" : "; what else is on disk is being removed"
        return "purge \(value["id"]?.count ?? 0): \(counted(memory)) in memory, \(disk) on disk"
            + rest + "\n"
    }

    /// Which of the gateways that share the cache have carried it out; empty if it is not shared.
    private static func text(ofFleet fleet: DocumentValue?) -> String {
        guard let fleet else { return "" }
        func names(_ key: String) -> [String] {
            guard case .array(let values)? = fleet[key] else { return [] }
            return values.compactMap(\.text)
        }
        let confirmed = names("confirmed")
        var lines: [String] = []
        if fleet["recorded"] == .boolean(false) {
            lines.append("the shared cache is away: other gateways are told when it is back")
        } else {
            lines.append("confirmed by \(confirmed.isEmpty ? "none" : listed(confirmed))")
        }
        let unconfirmed = names("unconfirmed")
        if !unconfirmed.isEmpty { lines.append("not confirmed by \(listed(unconfirmed))") }
        let away = names("away")
        if !away.isEmpty { lines.append("away: \(listed(away))") }
        return lines.map { $0 + "\n" }.joined()
    }

    private static func listed(_ names: [String]) -> String {
        names.map { TableText.printable($0) }.joined(separator: ", ")
    }

    private static func counted(_ count: Int64) -> String {
        count == 1 ? "1 response" : "\(count) responses"
    }
}
