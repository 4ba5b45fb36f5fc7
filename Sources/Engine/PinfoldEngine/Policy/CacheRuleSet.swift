import CachePolicy
import HTTPCore
import PinfoldConfiguration
import Transformation

/// What an entry of `hosts` says about the cache, ready to be applied: the rules of each of its
/// paths, and those of all other paths. Shared by all workers.
final class CacheRuleSet: Sendable {
    /// The rules for some paths.
    struct Route: Sendable {
        /// What the path and its entry come to.
        let rules: CacheRules
        /// How queries become a part of the key; `nil` if they are that as they are.
        let query: KeyRules?
        /// What is added to the trust under which responses are stored (``Origin/fingerprint``).
        let mark: UInt64
        /// What changes in heads for clients; `nil` for nothing.
        let sentHead: ResponseHeadRules?
        /// The pattern by which the path is named; `nil` for the other paths.
        let label: String?
    }

    private let paths: PathIndex
    /// Those of the paths, of the other paths, and of those that servers may read in several ways,
    /// whose responses are not stored.
    let routes: [Route]

    /// The low bits of a stored fingerprint, by which rules differ that can be changed for what is
    /// stored. The others are the trust and what decides who shares a response: a response with
    /// other such bits is never used.
    static let changeable: UInt64 = (1 << 24) - 1

    /// - Returns: `nil` if the entry says nothing but what each of its origins knows by itself:
    ///   whether responses are stored, by which request fields, in which slices, to the end or not.
    init?(_ entry: HostEntry) {
        var known = entry.cache
        known.stores = nil
        known.key.fields = nil
        known.fill = nil
        known.sliceBytes = nil
        if entry.paths.isEmpty, known == CacheRules() { return nil }
        paths = PathIndex(entry.paths.map(\.match))
        let patterns = entry.paths.map { $0.match.map(\.description).joined(separator: " ") }
        var routes: [Route] = []
        for index in 0..<entry.paths.count + 2 {
            let isPath = index < entry.paths.count
            var rules = entry.cacheRules(path: isPath ? index : nil)
            if index > entry.paths.count { rules.stores = false }
            routes.append(
                Route(
                    rules: rules, query: rules.key.leavesQuery ? nil : rules.key,
                    mark: Self.mark(rules, entry, patterns, besides: routes.map(\.mark)),
                    sentHead: Self.sentHead(rules), label: isPath ? entry.paths[index].label : nil))
        }
        self.routes = routes
    }

    /// Which of ``routes`` a path and query belong to.
    func index(of target: Span<UInt8>) -> Int {
        switch paths.match(target) {
        case .list(let index): index
        case .none: routes.count - 2
        case .ambiguous: routes.count - 1
        }
    }

    /// A path and query as they are in keys.
    func keyed(_ target: Span<UInt8>) -> [UInt8] {
        let query = routes[index(of: target)].query
        return query?.applied(to: target) ?? target.indices.map { target[$0] }
    }

    /// The key of a URI, given as that of a request without rules.
    func keyed(_ key: CacheKey) -> CacheKey {
        let bytes = key.bytes
        // `scheme://authority/`, perhaps behind the kind of route.
        guard let authority = bytes.firstRange(of: Array("://".utf8))?.upperBound,
            let path = bytes[authority...].firstIndex(of: UInt8(ascii: "/"))
        else { return key }
        let target = keyed(bytes.span.extracting(path..<bytes.count))
        return CacheKey(bytes: bytes[..<path] + target)
    }

    /// The bits that tell rules apart; not those of other routes of the entry, so that what is
    /// stored tells its route.
    private static func mark(
        _ rules: CacheRules, _ entry: HostEntry, _ patterns: [String], besides others: [UInt64]
    ) -> UInt64 {
        let sharing = Self.sharing(rules, entry)
        var text = "pinfold cache rules 1\n" + patterns.joined(separator: "\n")
        while true {
            let changing = FNV1a.hash(text + "\n" + String(reflecting: rules))
            let mark = sharing & ~changeable | changing & changeable
            if mark != 0, !others.contains(where: { $0 & changeable == mark & changeable }) {
                return mark
            }
            text += "+"
        }
    }

    /// What decides who shares a response, and is never changed for what is stored: 0 if nothing
    /// out of the ordinary does.
    private static func sharing(_ rules: CacheRules, _ entry: HostEntry) -> UInt64 {
        // The fields that the entry adds to the key are part of the trust.
        var key = KeyRules()
        key.fields = entry.cache.key.fields
        var overrides = rules.freshness.overrides ?? []
        overrides.subtract([.mustRevalidate, .requestNoCache])
        let setsCookies = rules.setCookie == .strip || rules.setCookie == .always
        if rules.key == key, overrides.isEmpty, !setsCookies { return 0 }
        let cookies = setsCookies ? rules.setCookie?.rawValue ?? "" : ""
        let keys = rules.key == key ? "" : String(reflecting: rules.key)
        return FNV1a.hash("\(overrides.names) \(cookies) \(keys)")
    }

    private static func sentHead(_ rules: CacheRules) -> ResponseHeadRules? {
        guard rules.passesTags == false else { return nil }
        var headers = HeaderRules()
        headers.remove = rules.tagFields ?? CacheRules.defaultTagFields
        return ResponseHeadRules(headers, name: nil)
    }
}

extension PolicySnapshot {
    /// What a host entry says about the cache; `nil` if nothing out of the ordinary, or if there is
    /// no entry.
    func cacheRules(entryIndex: Int?) -> CacheRuleSet? {
        entryIndex.flatMap { entryCacheRules[$0] }
    }

    /// Whether two entries say the same about the cache, so that what is stored under one can be
    /// used under the other.
    func cachesAlike(_ one: Int?, _ other: Int?) -> Bool {
        guard one != other else { return true }
        func said(_ entry: Int?) -> (CacheRules, [PathRule]) {
            let entry = entry.map { configuration.hosts.entries[$0] }
            return (entry?.cache ?? CacheRules(), entry?.paths ?? [])
        }
        if cacheRules(entryIndex: one) == nil, cacheRules(entryIndex: other) == nil { return true }
        return said(one) == said(other)
    }
}
