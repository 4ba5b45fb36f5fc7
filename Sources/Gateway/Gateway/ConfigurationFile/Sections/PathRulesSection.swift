import CachePolicy
import HTTPCore
import PinfoldConfiguration

/// `paths` of an entry of `hosts`.
extension HostEntry {
    static var pathsKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "paths", \.paths, reading: { $0.pathRules($1) }, text: { _ in "[]" })
        key.isBlock = { !$0.paths.isEmpty }
        key.block = { yaml, level, entry in
            for rule in entry.paths { yaml.element(level, PathRule.table, rule) }
        }
        key.described = { _ in
            PathRule.table.described(PathRule()).map { $0.within("paths") }
        }
        return key
    }
}

extension PathRule {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .required(
                "match", \.match, expected: "a list of path patterns",
                reading: { $0.pathPatterns($1) },
                text: { YAMLText.list($0.map(\.description)) }),
            ConfigurationKey("cache", \.cache, table: CacheRules.table(isOfPath: true)),
        ])
    }
}

extension SnapshotReader {
    /// The maximum number of paths of an entry: each of them is looked at for each request.
    static let maximumPathRules = 64
    /// The maximum number of patterns of one of them.
    private static let maximumPathPatterns = 16

    fileprivate func pathRules(_ field: Field) -> [PathRule]? {
        guard let elements = field.list(of: "paths with match") else { return nil }
        guard elements.count <= Self.maximumPathRules else {
            field.fail(
                "has \(elements.count) entries", expected: "at most \(Self.maximumPathRules)")
            return nil
        }
        var rules: [PathRule] = []
        for element in elements {
            let (rule, section) = read(element, by: PathRule.table, over: PathRule())
            guard section != nil else {
                if case .null = element.node.content {
                    element.fail("is empty", expected: "a mapping with match")
                }
                continue
            }
            let covering = rules.first { earlier in
                !rule.match.isEmpty && rule.match.allSatisfy(earlier.match.contains)
            }
            if let covering {
                element.warn(
                    "never applies: the entry for \(covering.label) before it has the same paths")
            }
            rules.append(rule)
        }
        return rules
    }

    fileprivate func pathPatterns(_ field: Field) -> [PathPattern]? {
        guard let elements = field.list(of: "path patterns") else { return nil }
        if elements.isEmpty { field.fail("matches nothing", expected: "a list of path patterns") }
        guard elements.count <= Self.maximumPathPatterns else {
            field.fail(
                "has \(elements.count) patterns",
                expected: "at most \(Self.maximumPathPatterns)")
            return nil
        }
        return elements.compactMap { pathPattern($0) }
    }

    /// Checks what is said about the cache against itself, once each key is valid by itself.
    func checkCacheRules(_ section: Section, _ entry: HostEntry) {
        if let cache = section["cache"] { check(cache, entry.cache) }
        guard let elements = section["paths"]?.elements, elements.count == entry.paths.count else {
            return
        }
        for (index, element) in elements.enumerated() {
            if let cache = element.key("cache") { check(cache, entry.cacheRules(path: index)) }
        }
    }

    /// - Parameter rules: what the keys and what they inherit come to.
    private func check(_ field: Field, _ rules: CacheRules) {
        let freshness = rules.freshness
        if let least = freshness.minimumSeconds, let most = freshness.maximumSeconds, least > most {
            let place = field.key("freshness") ?? field
            (place.key("minimum") ?? place).fail(
                "\(Quantity.text(milliseconds: least * 1_000)) exceeds the maximum, "
                    + Quantity.text(milliseconds: most * 1_000),
                expected: "a minimum that is not longer than the maximum")
        }
        if let key = field.key("key"), rules.key.ignoredParameters?.isEmpty == false,
            rules.key.keptParameters != nil
        {
            (key.key("query") ?? key).fail(
                "has ignore and keep", expected: "only one of the two")
        }
        let keyed = rules.key.fields ?? []
        for name in rules.key.ignoredFields ?? [] where keyed.contains(name) {
            (field.key("key") ?? field).fail(
                "\(quoted(name)) is added to the key and ignored in it", expected: "one of the two")
        }
        warnOfRFC(field, rules)
    }

    /// Says which keys leave RFC 9111.
    private func warnOfRFC(_ field: Field, _ rules: CacheRules) {
        func warn(_ keys: [String], _ text: String) {
            var place = field
            for key in keys {
                // Only what is written here is warned about here.
                guard let inner = place.key(key) else { return }
                place = inner
            }
            place.warn("\(text), which is outside RFC 9111")
        }
        let outside = (rules.freshness.overrides ?? [])
            .intersection(PolicyOverrides.outsideTheRFC)
        if !outside.isEmpty {
            warn(
                ["freshness", "overrides"],
                "\(outside.names.joined(separator: ", ")) of responses "
                    + "\(outside.names.count == 1 ? "does" : "do") not count")
        }
        if rules.freshness.minimumSeconds ?? 0 > 0 {
            warn(
                ["freshness", "minimum"],
                "responses are used for longer than they state")
        }
        if rules.freshness.byStatus?.extendsHeuristics ?? false {
            warn(
                ["freshness", "byStatus"],
                "responses are stored that neither state a lifetime nor have a status that allows "
                    + "one to be assumed")
        }
        if !(rules.key.ignoredFields ?? []).isEmpty {
            warn(
                ["key", "fields", "ignore"],
                "responses are used for requests for which their Vary excludes them")
        }
        if !rules.key.leavesQuery {
            warn(["key", "query"], "responses are used for URIs other than their own")
        }
        if rules.setCookie == .strip {
            warn(["setCookie"], "responses are stored without some of their fields")
        }
        if rules.setCookie == .always {
            field.key("setCookie")?.warn(
                "the cookies that a server sets for one client are sent to all others")
        }
        if rules.isOffline ?? false {
            warn(["offline"], "responses are used however old they are")
        }
    }
}
