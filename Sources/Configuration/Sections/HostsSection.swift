import HTTPCore
import Notation
import Pinning

/// `hosts`.
extension SnapshotReader {
    /// The entries in the order written.
    func hosts(
        _ field: Field?, pinsets: [PinsetEntry], over defaults: UpstreamTLS
    ) -> [HostEntry] {
        let elements = field?.boundedList(of: "entries with match") ?? []
        return elements.compactMap { element in
            host(element, pinsets: pinsets.map(\.pinset.name), over: defaults)
        }
    }

    private func host(
        _ field: Field, pinsets: [String], over defaults: UpstreamTLS
    ) -> HostEntry? {
        let keys = [
            "match", "name", "upgrade", "tunnel", "clearText", "pinsets", "tls", "request",
            "timeouts", "cache", "probe",
        ]
        let later = ["intercept", "tls13Tunnel", "response"]
        guard let section = field.section(keys: keys, later: later) else {
            if case .null = field.node.content {
                field.fail("is empty", expected: "a mapping with match")
            }
            return nil
        }
        let match = match(section)
        let request = section["request"]?.section(
            keys: ["timeout"], later: ["headers", "cachePolicy"])
        let cache = section["cache"]?.section(keys: ["store", "key"])
        let name = section["name"]?.parsed(
            expected: "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`"
        ) { isName($0) ? $0 : nil }
        return HostEntry(
            match: match, name: name,
            upgradesToHTTPS: section["upgrade"]?.choice(Upgrade.self) == .https,
            tunnel: section["tunnel"].flatMap { tunnel($0) } ?? .auto,
            clearText: section["clearText"]?.choice() ?? .auto,
            pinsets: references(section["pinsets"], to: pinsets),
            tls: upstreamTLS(
                section["tls"], over: defaults, later: ["clientCertificate", "clientKey"]),
            timeouts: hostTimeouts(section["timeouts"], request: request?["timeout"]),
            cacheStores: cache?["store"]?.boolean() ?? true,
            cacheKeyFields: cache?["key"].flatMap { fieldNames($0) } ?? [],
            probe: probe(section["probe"], match: match))
    }

    private enum Upgrade: String, CaseIterable {
        case https
        case none
    }

    private func match(_ section: Section) -> [HostPattern] {
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
        return elements.compactMap { hostPattern($0) }
    }

    private func tunnel(_ field: Field) -> TunnelMode? {
        if case .scalar("inspect", _) = field.node.content {
            field.fail(
                "\(quoted("inspect")) is not yet supported", expected: "auto, pass or refuse")
            return nil
        }
        return field.choice()
    }

    /// The indexes of the pinsets that an entry names.
    private func references(_ field: Field?, to names: [String]) -> [Int] {
        var found: [Int] = []
        for element in field?.boundedList(of: "names of pinsets") ?? [] {
            guard let name = element.text(expected: "the name of a pinset") else { continue }
            guard let index = names.firstIndex(of: name) else {
                let nearest = NearestKey.nearest(to: name, among: names)
                let hint = nearest.map { " (did you mean \(quoted($0))?)" } ?? ""
                element.fail(
                    "there is no pinset \(quoted(name))\(hint)", expected: "a key of pinsets")
                continue
            }
            guard !found.contains(index) else {
                element.fail(
                    "the pinset \(quoted(name)) is named twice", expected: "each pinset once")
                continue
            }
            found.append(index)
        }
        return found
    }

    /// The names of request header fields, in lower case; nil for an empty key.
    func fieldNames(_ field: Field) -> [String]? {
        guard let elements = field.boundedList(of: "request header fields") else { return nil }
        var names: [String] = []
        for element in elements {
            let name = element.parsed(expected: "the name of a request header field") { text in
                isToken(text) && text.utf8.count <= 128 ? text.lowercasedASCII : nil
            }
            guard let name else { continue }
            if names.contains(name) {
                element.fail("the field \(quoted(name)) is named twice", expected: "each once")
            }
            names.append(name)
        }
        return names
    }

    /// RFC 9110 §5.6.2: `1*tchar`.
    private func isToken(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(ByteClass.isToken)
    }

    private func probe(_ field: Field?, match: [HostPattern]) -> ProbeConfiguration? {
        guard let field, let section = field.section(keys: ["interval", "path"]) else {
            return nil
        }
        let interval = section["interval"]?.milliseconds(in: 10...86_400_000)
        let path = section["path"]?.parsed(
            expected: "an absolute path, as in /health"
        ) { text in
            text.hasPrefix("/") && text.utf8.count <= 1_024
                && text.utf8.allSatisfy { 0x21...0x7E ~= $0 && $0 != UInt8(ascii: "#") }
                ? text : nil
        }
        if !match.isEmpty, match.allSatisfy({ $0.description.hasPrefix("*") }) {
            field.fail(
                "has no host to ask, since all patterns of the entry have wildcards",
                expected: "an exact host name in match")
        }
        return ProbeConfiguration(intervalMilliseconds: interval ?? 30_000, path: path ?? "/")
    }
}
