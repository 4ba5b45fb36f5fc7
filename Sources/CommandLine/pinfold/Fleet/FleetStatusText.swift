import Documents

/// The fleet for people.
enum FleetStatusText {
    /// The most hosts and pins that are shown; all are in the answer as JSON.
    static let shownHosts = 10
    static let shownPins = 20

    /// The beginning of a hash, which is enough to compare by eye.
    static func short(_ hash: String) -> String { String(hash.prefix(12)) }

    /// Whether there is nothing to be looked at.
    static func isWell(_ value: DocumentValue) -> Bool {
        value["current"] == .boolean(true) && value["agree"] == .boolean(true)
            && value.list("gateways").allSatisfy {
                $0["away"] != .boolean(true) && $0["purged"] == .boolean(true)
                    && $0["problem"] == nil && ($0["policy"]?.list("alarms") ?? []).isEmpty
            }
    }

    static func text(of value: DocumentValue) -> String {
        (summary(value) + table(value) + hosts(value) + pins(value)).joined()
    }

    // MARK: The first lines

    private static func summary(_ value: DocumentValue) -> [String] {
        var lines: [String] = []
        if value["current"] != .boolean(true) {
            lines.append("the engine does not answer; this is what was known before\n")
        }
        let gateways = value.list("gateways")
        let behind = gateways.filter {
            $0["purged"] != .boolean(true) && $0["away"] != .boolean(true)
        }
        let count = gateways.count == 1 ? "1 gateway" : "\(gateways.count) gateways"
        let purges =
            behind.isEmpty
            ? "all purges are carried out"
            : "purges are not carried out yet by " + behind.map(name).joined(separator: ", ")
        lines.append("\(count); \(purges)\n")
        let policies = value.list("policies")
        if value["agree"] == .boolean(true) {
            if let policy = policies.first {
                lines.append("all have \(Self.policy(policy))\n")
            }
        } else {
            for policy in policies {
                let names = policy.words("gateways").joined(separator: ", ")
                lines.append("\(Self.policy(policy)): \(names)\n")
            }
        }
        for gateway in gateways {
            for alarm in gateway["policy"]?.words("alarms") ?? [] {
                lines.append("alarm of \(name(gateway)): the policy is \(alarm)\n")
            }
            if let refusal = gateway["policy"]?["offered"]?["refusal"]?.text {
                let serial = gateway["policy"]?["offered"]?["serial"]?.count ?? 0
                lines.append("\(name(gateway)) refuses serial \(serial): \(refusal)\n")
            }
        }
        return lines.map(printable)
    }

    private static func policy(_ value: DocumentValue) -> String {
        guard let serial = value["serial"]?.count else { return "no policy" }
        return "policy serial \(serial) (\(short(value["hash"]?.text ?? "")))"
    }

    private static func name(_ value: DocumentValue) -> String { value["name"]?.text ?? "?" }

    private static func printable(_ line: String) -> String {
        TableText.printable(String(line.dropLast())) + "\n"
    }

    // MARK: The gateways

    private static func table(_ value: DocumentValue) -> [String] {
        var table = TableText(
            [
                "GATEWAY", "VERSION", "SINCE", "SEEN", "PURGES", "POLICY", "LOOKUPS", "MEMORY",
                "DISK", "SHARED",
            ], rightAligned: [3, 6, 7, 8, 9])
        for gateway in value.list("gateways") {
            let seen = StatusText.time((gateway["age_ms"]?.count ?? 0) / 1000) + " ago"
            let isAway = gateway["away"] == .boolean(true)
            let purges = isAway ? "away" : gateway["purged"] == .boolean(true) ? "done" : "behind"
            guard gateway["problem"] == nil else {
                table.add([name(gateway), "?", "?", seen, purges, "?", "", "", "", ""])
                continue
            }
            let serial = gateway["policy"]?["serial"]?.count
            let hash = short(gateway["policy"]?["hash"]?.text ?? "")
            let started = (gateway["started"]?.text ?? "?").prefix(16)
            let policy = serial.map { "\($0) \(hash)" } ?? "none"
            let version = gateway["version"]?.text ?? "?"
            var row = [name(gateway), version, "\(started)Z", seen, purges, policy]
            row += cache(gateway["cache"] ?? .null)
            table.add(row)
        }
        if value.list("gateways").count > 1 {
            var row = ["all", "", "", "", "", ""]
            row += cache(value["cache"] ?? .null)
            table.add(row)
        }
        return [table.text]
    }

    /// Lookups, and which share of them each level had.
    private static func cache(_ value: DocumentValue) -> [String] {
        let lookups = value["lookups"]?.count ?? 0
        var cells = ["\(lookups)"]
        for level in ["memoryHits", "diskHits", "sharedHits"] {
            let hits = value[level]?.count ?? 0
            cells.append(lookups > 0 ? "\(hits * 100 / lookups) %" : "-")
        }
        return cells
    }

    // MARK: What they see

    private static func hosts(_ value: DocumentValue) -> [String] {
        let troubled = value.list("hosts").compactMap { host -> String? in
            let sights = host.list("gateways").compactMap { sight -> String? in
                let unreachable = sight["notReachable"]?.count ?? 0
                var all: Int64 = 0
                for state in ["reachable", "notReachable", "unknown"] {
                    all += sight[state]?.count ?? 0
                }
                var troubles = sight.words("trouble").filter { $0 != "not_reachable" }
                if unreachable > 0 {
                    troubles.insert("\(unreachable) of \(all) servers not reachable", at: 0)
                }
                guard !troubles.isEmpty else { return nil }
                return "\(sight["gateway"]?.text ?? "?") (\(troubles.joined(separator: ", ")))"
            }
            guard !sights.isEmpty else { return nil }
            return "\(host["entry"]?.text ?? "?"): \(sights.joined(separator: ", "))"
        }
        return rows("host", troubled, most: shownHosts)
    }

    private static func pins(_ value: DocumentValue) -> [String] {
        let unseen = value.list("unseenPins").map { pin in
            let since = String((pin["since"]?.text ?? "?").prefix(10))
            let what =
                pin["hasMatched"] == .boolean(true)
                ? "no gateway has seen it since \(since)"
                : "no gateway has ever seen it, watched since \(since)"
            return "\(pin["pinset"]?.text ?? "?") \(pin["pin"]?.text ?? "?"): \(what)"
        }
        return rows("pin", unseen, most: shownPins)
    }

    private static func rows(_ kind: String, _ texts: [String], most: Int) -> [String] {
        var lines = texts.prefix(most).map { printable("\(kind)  \($0)\n") }
        if texts.count > most { lines.append("\(kind)  and \(texts.count - most) more (--json)\n") }
        return lines
    }
}
