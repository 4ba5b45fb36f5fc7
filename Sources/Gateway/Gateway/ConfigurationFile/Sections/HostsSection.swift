import HTTPCore
import PinfoldConfiguration
import Trust

/// An element of `hosts`.
extension HostEntry {
    private enum Upgrade: String, CaseIterable {
        case https
        case none
    }

    /// The table of keys.
    ///
    /// - Parameter pinsets: The names of the pinsets, to which an entry refers by index.
    static func table(pinsets: [String]) -> KeyTable<Self> {
        let indices = Dictionary(zip(pinsets, pinsets.indices)) { first, _ in first }
        return KeyTable(
            keys: [
                ConfigurationKey(
                    "match", byDefault: "required",
                    readSection: { reader, section, entry in
                        if let section { entry.match = reader.match(section) }
                    },
                    text: { YAMLText.list($0.match.map(\.description)) }),
                ConfigurationKey(
                    "name", \.name, byDefault: "the first pattern", reading: { $1.name() },
                    text: { $0.map(YAMLText.quoted) }),
                ConfigurationKey(
                    "upgrade", \.upgradesToHTTPS,
                    reading: { $1.choice(Upgrade.self).map { $0 == .https } },
                    text: { ($0 ? Upgrade.https : Upgrade.none).rawValue }),
                ConfigurationKey(
                    "tunnel",
                    read: { _, field, entry in entry.tunnel = field?.choice() ?? entry.tunnel },
                    text: {
                        let note = $0.noteOfAuto("refuse, unless intercepted")
                        return $0.tunnel.rawValue + ($0.tunnel == .auto ? note : "")
                    }),
                ConfigurationKey(
                    "tls13Tunnel", byDefault: TLS13TunnelMode.refuse.rawValue,
                    read: { _, field, entry in
                        entry.tls13Tunnel = field?.choice() ?? entry.tls13Tunnel
                    },
                    // It has no effect without inspection.
                    text: { $0.tunnel == .inspect ? $0.tls13Tunnel.rawValue : nil }),
                ConfigurationKey(
                    "liveTunnels",
                    read: { _, field, entry in
                        entry.liveTunnels = field?.choice() ?? entry.liveTunnels
                    },
                    text: { $0.liveTunnels.rawValue }),
                ConfigurationKey(
                    "intercept",
                    read: { _, field, entry in
                        // In an entry with inspection and without this key, inspection takes
                        // precedence over interception.
                        if field == nil, entry.tunnel == .inspect { entry.intercept = .never }
                        entry.intercept = field?.choice() ?? entry.intercept
                    },
                    text: { $0.intercept.rawValue }),
                ConfigurationKey(
                    "clearText",
                    read: { _, field, entry in
                        entry.clearText = field?.choice() ?? entry.clearText
                    },
                    text: {
                        $0.clearText.rawValue
                            + ($0.clearText == .auto ? $0.noteOfAuto("refuse") : "")
                    }),
                .choice("switchProtocols", \.switchProtocols),
                .choice("http2", \.http2),
                ConfigurationKey(
                    "pinsets", \.pinsets, reading: { $0.references($1, to: pinsets, by: indices) },
                    text: { YAMLText.list($0.map { pinsets[$0] }) }),
                ConfigurationKey(
                    "pins", \.pinObservation, byDefault: "from pins.observe",
                    reading: { $1.choice(PinObservationMode.self) },
                    text: { $0.map(\.rawValue) }),
                tlsKey,
                ConfigurationKey(
                    "parents", \.parents, byDefault: "from ways",
                    reading: { $0.wayNames($1) }, text: { $0.map(WaysConfiguration.text) }),
                ConfigurationKey(
                    "noProxy", \.noProxy, reading: { $0.destinations($1) },
                    text: { YAMLText.list($0.texts) }),
                ConfigurationKey(
                    "via", \.via, byDefault: "from via", reading: { $1.gatewayName() },
                    text: { $0.map { YAMLText.quoted($0.text) } }),
                ConfigurationKey("request", \.self, table: requestTable, isBlock: true)
                    .printed { $0.request != RequestRules() },
                ConfigurationKey("response", \.response, table: ResponseRules.table, isBlock: true)
                    .printed { !$0.response.isEmpty },
                ConfigurationKey("timeouts", \.timeouts, table: HostTimeouts.table),
                ConfigurationKey("cache", \.self, table: cacheTable),
                pathsKey,
                probeKey,
            ])
    }

    /// `tls` of an entry, which inherits the values of the top-level `tls`.
    private static var tlsKey: ConfigurationKey<Self> {
        let table = UpstreamTLS.hostTable
        let inherited = UpstreamTLS.table.names
        var key = ConfigurationKey<Self>("tls", \.tls, table: table)
        key.described = { entry in
            table.described(entry.tls).map { described in
                var described = described
                // The other keys exist in entries only.
                let name = String(described.name.prefix { $0 != "." })
                if inherited.contains(name) {
                    described.byDefault = .words("from tls")
                }
                return described.within("tls")
            }
        }
        return key
    }

    /// The comment that is printed after `auto`.
    private func noteOfAuto(_ meaning: String) -> String {
        pinsets.isEmpty ? "" : "  # \(meaning): the entry has pinsets"
    }

    /// `request`. Its key `timeout` is an older name of `timeouts.firstByte`, and is printed as
    /// that.
    private static var requestTable: KeyTable<Self> {
        let timeout = ConfigurationKey<Self>(
            "timeout", \.timeouts.firstByteMilliseconds, byDefault: "from timeouts",
            reading: { $1.milliseconds(in: HostTimeouts.range) }, text: { _ in nil })
        return KeyTable(
            keys: [timeout] + RequestRules.table.keys.map { $0.lifted(to: \.request) })
    }

    /// `probe`, which is `nil` unless it is written.
    private static var probeKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "probe",
            read: { reader, field, entry in
                entry.probe = field.flatMap { reader.probe($0, match: entry.match) }
            },
            text: { $0.probe.flatMap(ProbeConfiguration.table.flow) })
        key.described = { _ in
            ProbeConfiguration.table.described(ProbeConfiguration()).map { $0.within("probe") }
        }
        return key
    }
}

/// `probe` of an entry of `hosts`.
extension ProbeConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .milliseconds("interval", \.intervalMilliseconds, in: 10...86_400_000),
            ConfigurationKey(
                "path", \.path,
                reading: { _, field in
                    field.parsed(expected: "an absolute path such as /health") { text in
                        text.hasPrefix("/") && text.utf8.count <= 1_024
                            && text.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }
                            ? text : nil
                    }
                }, text: YAMLText.quoted),
        ])
    }
}

/// `hosts`.
extension SnapshotReader {
    /// Reads the entries, in the order written.
    func hosts(
        _ field: Field?, pinsets: [PinsetEntry], over defaults: UpstreamTLS
    ) -> [HostEntry] {
        let elements = field?.boundedList(of: "entries with match") ?? []
        let table = HostEntry.table(pinsets: pinsets.map(\.pinset.name))
        for (index, element) in elements.enumerated() {
            // Those of a policy follow, and are looked at by its own checks.
            let next = index + 1 < elements.count ? elements[index + 1] : nil
            let isLast = next.map { isOfPolicy($0) && !isOfPolicy(element) } ?? true
            checkEverything(in: element, isLast: isLast)
        }
        return elements.compactMap { host($0, by: table, over: defaults) }
    }

    /// Whether an entry was written in a policy.
    private func isOfPolicy(_ entry: Field) -> Bool {
        validation.policy?.wrote(entry.node) ?? false
    }

    /// The table of the entries of a list.
    func table(of hosts: [HostEntry], in field: Field?) -> HostTable {
        guard let policy = validation.policy, let elements = field?.elements,
            elements.count == hosts.count
        else { return HostTable(entries: hosts) }
        return HostTable(
            entries: hosts, localCount: elements.count { !isOfPolicy($0) },
            policyLists: policy.narrowing.local.access.hosts == .any)
    }

    /// Reports the pattern for everything where others follow it, which would never apply.
    private func checkEverything(in entry: Field, isLast: Bool) {
        let patterns = entry.key("match")?.elements ?? []
        for (index, pattern) in patterns.enumerated() where pattern.node.isEverything {
            guard !isLast || index < patterns.count - 1 else { continue }
            pattern.fail(
                "'**' matches every host, so that nothing after it would ever apply",
                expected: "it as the last pattern of the last entry")
        }
    }

    private func host(
        _ field: Field, by table: KeyTable<HostEntry>, over defaults: UpstreamTLS
    ) -> HostEntry? {
        guard let section = field.section(keys: table.names, later: table.later) else {
            if case .null = field.node.content {
                field.fail("is empty", expected: "a mapping with match")
            }
            return nil
        }
        let errorsBefore = validation.errors.count
        let entry: HostEntry
        if let policy = validation.policy, isOfPolicy(field) {
            var base = policy.base
            base.pinsets = []
            entry = policy.narrowing.applied(read(section, by: table, over: base))
        } else {
            entry = read(section, by: table, over: HostEntry(tls: defaults))
        }
        // Contradictions between the parts are reported only if each part is valid by itself.
        if validation.errors.count == errorsBefore {
            if let request = section["request"] { check(request: request, entry.request) }
            checkCacheRules(section, entry)
            if let response = section["response"] { check(response: response, entry.response) }
        }
        if let other = section["request"]?.key("timeout"),
            section["timeouts"]?.key("firstByte") != nil
        {
            other.fail(
                "means the same as timeouts.firstByte of this entry",
                expected: "only one of the two")
        }
        return entry
    }

    fileprivate func match(_ section: Section) -> [HostPattern] {
        let expected = "a list of host patterns"
        guard
            let elements = section.required("match", expected: expected)?
                .boundedList(of: "host patterns")
        else {
            if let field = section["match"], case .null = field.node.content {
                field.fail("has no value", expected: expected)
            }
            return []
        }
        if elements.isEmpty { section["match"]?.fail("matches nothing", expected: expected) }
        return elements.compactMap { $0.node.isEverything ? .everything : hostPattern($0) }
    }

    /// The indexes of an entry's pinsets.
    fileprivate func references(
        _ field: Field, to names: [String], by indices: [String: Int]
    ) -> [Int] {
        var found: [Int] = []
        var seen: Set<Int> = []
        for element in field.boundedList(of: "names of pinsets") ?? [] {
            guard let name = element.text(expected: "the name of a pinset") else { continue }
            guard let index = indices[name] else {
                let hint = validation.hint(for: name, among: names)
                element.fail(
                    "there is no pinset \(quoted(name))\(hint)", expected: "a key of pinsets")
                continue
            }
            guard seen.insert(index).inserted else {
                element.fail(
                    "the pinset \(quoted(name)) is listed twice", expected: "each pinset once")
                continue
            }
            found.append(index)
        }
        return found
    }

    /// The names of request header fields in lower case, or `nil` for an empty key.
    func fieldNames(_ field: Field) -> [String]? {
        guard let elements = field.boundedList(of: "request header fields") else { return nil }
        var names: [String] = []
        for element in elements {
            let name = element.parsed(expected: "the name of a request header field") { text in
                isToken(text) && text.utf8.count <= 128 ? text.lowercasedASCII : nil
            }
            guard let name else { continue }
            if names.contains(name) {
                element.fail("the field \(quoted(name)) is listed twice", expected: "each once")
            }
            names.append(name)
        }
        return names
    }

    fileprivate func probe(_ field: Field, match: [HostPattern]) -> ProbeConfiguration? {
        let (probe, section) = read(
            field, by: ProbeConfiguration.table, over: ProbeConfiguration())
        guard section != nil else { return nil }
        if !match.isEmpty, match.allSatisfy({ $0.exactName == nil }) {
            field.fail(
                "has no host to probe, because all patterns of the entry have wildcards",
                expected: "an exact host name in match")
        }
        return probe
    }
}

extension ConfigNode {
    /// Whether it is the pattern for everything.
    var isEverything: Bool {
        if case .scalar("**", _) = content { true } else { false }
    }
}
