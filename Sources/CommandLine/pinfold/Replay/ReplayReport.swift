import HTTPCore

/// What `pinfold replay` prints.
struct ReplayReport {
    let summary: ReplaySummary
    /// The configuration that requests were judged under, and what that is compared with.
    let new: String
    let old: String?
    let files: [String]
    /// The number of hosts whose keys are known; `nil` if no file says.
    let observedHosts: Int?
    /// How many hosts, clients and users are listed.
    static let rows = 10

    // MARK: Lines

    var text: String {
        var lines = [opening]
        if !summary.firstTime.isEmpty {
            lines.append("from \(summary.firstTime) to \(summary.lastTime)")
        }
        lines += skipped
        if let pins { lines.append(pins) }
        if summary.withoutAddress > 0 {
            lines.append(
                "\(summary.withoutAddress) also depend on an address that the log does not have "
                    + "(upstream), and were judged without it")
        }
        lines.append(verdict)
        for (kind, groups) in sections {
            lines += ["", "\(kind.title): \(groups.reduce(0) { $0 + $1.group.count })"]
            for (change, group) in groups {
                lines.append("  \(group.count)  \(change.text)")
                lines += group.examples.map { "       \(Self.text($0))" }
            }
        }
        lines +=
            table("by host", summary.hosts) + table("by client", summary.clients)
            + table("by user", summary.users)
        // What is in a log must not make lines of its own, nor act on a terminal.
        return lines.map { $0.printable + "\n" }.joined()
    }

    private var opening: String {
        "\(Self.count(summary.lines, "line")) of \(files.joined(separator: ", ")): "
            + "\(Self.count(summary.judged, "request")) judged under \(new)"
    }

    private var verdict: String {
        let rest = old.map { "than under \($0)" } ?? "than the log says"
        return summary.changed == 0
            ? "no request fares differently \(rest)"
            : "\(Self.count(summary.changed, "request")) "
                + "\(summary.changed == 1 ? "fares" : "fare") differently \(rest)"
    }

    private var skipped: [String] {
        var lines: [String] = []
        if summary.unreadable > 0 {
            lines.append("not judged: \(summary.unreadable) not a line of an access log")
        }
        for (name, count) in summary.lacking.first(.max).rows {
            lines.append("not judged: \(count) without a usable \(name)")
        }
        for (why, count) in summary.undecided.first(Self.rows).rows {
            lines.append("not judged: \(count) \(why)")
        }
        return lines
    }

    private var pins: String? {
        guard let observedHosts else {
            return "pins: not judged: the log does not have servers' keys (--observed)"
        }
        let known = "pins: judged for \(Self.count(observedHosts, "host")) by the keys observed"
        return summary.withoutKeys == 0
            ? known
            : known
                + ", not for \(Self.count(summary.withoutKeys, "request")) to other pinned hosts"
    }

    private typealias Row = (change: ReplayChange, group: ReplaySummary.Group)

    private var sections: [(kind: ReplayChange.Kind, groups: [Row])] {
        ReplayChange.Kind.allCases.compactMap { kind in
            let groups = summary.groups.filter { $0.key.kind == kind }
                .sorted { ($1.value.count, $0.key.text) < ($0.value.count, $1.key.text) }
                .map { (change: $0.key, group: $0.value) }
            return groups.isEmpty ? nil : (kind, groups)
        }
    }

    private func table(_ title: String, _ tally: ReplayTally) -> [String] {
        let (rows, rest, restCount) = tally.first(Self.rows)
        guard !rows.isEmpty else { return [] }
        var lines = ["", "\(title):"] + rows.map { "  \($0.count)  \($0.name)" }
        if rest > 0 { lines.append("  \(restCount)  \(rest) others") }
        return lines
    }

    private static func text(_ example: ReplaySummary.Example) -> String {
        let user = example.user.map { " \($0)" } ?? ""
        let id = example.id.map { " (\($0))" } ?? ""
        return "\(example.time) \(example.client)\(user) \(example.method) \(example.target)\(id)"
    }

    private static func count(_ number: Int, _ unit: String) -> String {
        "\(number) \(unit)\(number == 1 ? "" : "s")"
    }

    // MARK: JSON

    /// One object, on one line.
    var json: String {
        var object = JSONObject()
        object.add("files", files)
        object.add("config", new)
        object.add("against", old ?? "log")
        object.add("from", summary.firstTime.isEmpty ? nil : summary.firstTime)
        object.add("to", summary.firstTime.isEmpty ? nil : summary.lastTime)
        object.add("lines", summary.lines)
        object.add("judged", summary.judged)
        object.add("changed", summary.changed)
        var skipped = JSONObject()
        skipped.add("unreadable", summary.unreadable)
        skipped.add("lacking", Self.object(summary.lacking, .max))
        skipped.add("undecided", Self.object(summary.undecided, .max))
        object.add("notJudged", skipped)
        object.add("withoutAddress", summary.withoutAddress)
        object.add("observedHosts", observedHosts)
        object.add("withoutKeys", observedHosts == nil ? nil : summary.withoutKeys)
        object.add(
            "changes",
            sections.flatMap(\.groups).map { change, group in
                var object = JSONObject()
                object.add("kind", change.kind.rawValue)
                object.add("before", change.before)
                object.add("after", change.after)
                object.add("count", group.count)
                object.add("examples", group.examples.map(Self.json))
                return object
            })
        object.add("hosts", Self.object(summary.hosts, Self.rows))
        object.add("clients", Self.object(summary.clients, Self.rows))
        object.add("users", Self.object(summary.users, Self.rows))
        return object.text
    }

    private static func object(_ tally: ReplayTally, _ most: Int) -> JSONObject {
        var object = JSONObject()
        for (name, count) in tally.first(most).rows { object.add(name, count) }
        return object
    }

    private static func json(_ example: ReplaySummary.Example) -> JSONObject {
        var object = JSONObject()
        object.add("time", example.time)
        object.add("client", example.client)
        object.add("user", example.user)
        object.add("method", example.method)
        object.add("target", example.target)
        object.add("id", example.id)
        return object
    }
}
