import CachePolicy
import EngineTestSupport
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("Origins by rules for the cache")
struct CacheRuleSetTests {
    private let table = OriginTable()

    private func policy(_ entry: String) throws -> PolicySnapshot {
        try testPolicy("hosts: [{ match: [a.test], \(entry) }]")
    }

    private func base(_ policy: PolicySnapshot, in table: OriginTable) throws -> Origin {
        let bytes = Array("a.test".utf8)
        let found = table.origin(host: bytes.span, port: 80, scheme: .http, policy: policy)
        return try #require(found)
    }

    /// The origin for a path.
    private func origin(_ path: String, _ policy: PolicySnapshot, in table: OriginTable) throws
        -> Origin
    {
        let base = try base(policy, in: table)
        guard let rules = policy.cacheRules(entryIndex: base.entryIndex) else { return base }
        let bytes = Array(path.utf8)
        let index = rules.index(of: bytes.span)
        return table.ruled(base, route: index, of: rules)
    }

    private let paths = """
        cache: { staleIfError: 1d }, paths: [
          { match: [/a/**], cache: { freshness: { default: 1h } } },
          { match: [/b/**], cache: { key: { query: { ignore: [x] } } } },
          { match: [/c], cache: { store: false, fill: whileWanted, slice: 1MiB } } ]
        """

    @Test(
        arguments: [
            "cache: {}", "cache: { store: false }", "cache: { key: [a], fill: always }",
            "cache: { slice: 1MiB, form: origin }", "paths: []",
        ])
    func `an entry without rules has none`(entry: String) throws {
        let policy = try policy(entry)
        #expect(policy.cacheRules(entryIndex: 0) == nil)
        let origin = try base(policy, in: table)
        #expect(!origin.usesRules && origin.usesCachePlainly == origin.cacheStores)
        #expect(origin.fingerprint == origin.trust.prefix && !origin.keyStart.isByRules)
    }

    @Test func `each path has an origin of its own, with its rules and the same connections`()
        throws
    {
        let policy = try policy(paths)
        let base = try base(policy, in: table)
        #expect(base.usesRules && !base.usesCachePlainly && base.keyStart.isByRules)
        let a = try origin("/a/x", policy, in: table)
        #expect(try origin("/a?b", policy, in: table) === a)
        #expect(a.base === base && a.carrier === base && !a.usesRules && a.usesCachePlainly)
        #expect(a.caching.options.route.freshness.defaultSeconds == 3600)
        #expect(a.caching.options.route.staleIfErrorSeconds == 86400)
        let b = try origin("/b/x", policy, in: table)
        #expect(b !== a && b.caching.query != nil && b.keyStart.isByRules)
        let c = try origin("/c", policy, in: table)
        #expect(!c.cacheStores && c.caching.fill == .whileWanted && c.caching.sliceBytes == 1 << 20)
        let rest = try origin("/d", policy, in: table)
        #expect(rest.caching.options.route.staleIfErrorSeconds == 86400 && rest.cacheStores)
        let unclear = try origin("/a/..%2fd", policy, in: table)
        #expect(!unclear.cacheStores)
        #expect(table.all.count == 1)
    }

    @Test func `what is stored tells its rules`() throws {
        let policy = try policy(paths)
        let base = try base(policy, in: table)
        #expect(base.byRules?.origin(storing: base.trust.prefix) == nil)
        let origins = try ["/a/", "/b/x", "/c", "/d", "/a/..%2fd"].map {
            try origin($0, policy, in: table)
        }
        #expect(Set(origins.map(\.fingerprint)).count == origins.count)
        for origin in origins {
            #expect(base.byRules?.origin(storing: origin.fingerprint) === origin)
        }
    }

    @Test func `rules that may change for what is stored differ in the low bits only`() throws {
        let trust = try base(policy(paths), in: table).trust.prefix
        func difference(_ path: String, _ entry: String) throws -> UInt64 {
            let table = OriginTable()
            return try origin(path, policy(entry), in: table).fingerprint ^ trust
        }
        let high = ~CacheRuleSet.changeable
        for entry in [
            "cache: { freshness: { default: 1h } }", "cache: { offline: true }",
            "cache: { freshness: { overrides: [mustRevalidate, requestNoCache] } }",
            "cache: { setCookie: never }",
            "paths: [{ match: [/a], cache: { staleIfError: 1s } }]", paths,
        ] {
            let difference = try difference("/a", entry)
            #expect(difference != 0 && difference & high == 0, "\(entry)")
        }
        for entry in [
            "cache: { setCookie: strip }", "cache: { setCookie: always }",
            "cache: { freshness: { overrides: [private] } }",
            "cache: { freshness: { overrides: [noStore, requestCookie] } }",
            "cache: { key: { query: { ignore: [a] } } }",
            "cache: { key: { fields: { ignore: [User-Agent] } } }",
            "cache: { key: { fields: { normalise: [Accept-Encoding] } } }",
            "paths: [{ match: [/a], cache: { key: [Cookie] } }]",
        ] {
            #expect(try difference("/a", entry) & high != 0, "\(entry)")
        }
        #expect(try difference("/a", "cache: {}") == 0)
        // Another pattern may give a response to another rule.
        let one = try difference("/a", "paths: [{ match: [/a], cache: { offline: true } }]")
        let other = try difference("/a", "paths: [{ match: [/a, /b], cache: { offline: true } }]")
        #expect(one != other && (one ^ other) & high == 0)
    }

    @Test(
        arguments: [
            ("http://a.test/b/1?x=1&y=2", "http://a.test/b/1?y=2"),
            ("http://a.test/a/1?x=1", "http://a.test/a/1?x=1"),
            ("reverse3:http://a.test:8080/b/?x", "reverse3:http://a.test:8080/b/"),
            ("http://a.test/b", "http://a.test/b"),
        ])
    func `the key of a URI is that of its path`(key: String, keyed: String) throws {
        let rules = try #require(try policy(paths).cacheRules(entryIndex: 0))
        #expect(rules.keyed(CacheKey(bytes: Array(key.utf8))) == CacheKey(bytes: Array(keyed.utf8)))
    }

    @Test func `the order in which statuses are written makes no difference`() throws {
        let one = try difference("{ 404: 1s, 5xx: 2s, 301: 3s }")
        let other = try difference("{ 301: 3s, 5xx: 2s, 404: 1s }")
        #expect(one == other)
        func difference(_ statuses: String) throws -> UInt64 {
            let table = OriginTable()
            let policy = try policy("cache: { freshness: { byStatus: \(statuses) } }")
            return try origin("/a", policy, in: table).fingerprint
        }
    }

    @Test func `after a burst they are made again`() throws {
        let policy = try policy(paths)
        let first = try origin("/a/", policy, in: table)
        table.byRules.removeAll()
        let second = try origin("/a/", policy, in: table)
        #expect(first !== second && first.fingerprint == second.fingerprint)
        // Another origin has taken the place of the first one meanwhile.
        let bytes = Array("a.test".utf8)
        table.byRules.removeAll()
        let found = table.origin(host: bytes.span, port: 8080, scheme: .http, policy: policy)
        let other = try #require(found)
        let rules = try #require(policy.cacheRules(entryIndex: other.entryIndex))
        let ofOther = table.ruled(other, route: 0, of: rules)
        let again = try origin("/a/", policy, in: table)
        #expect(again !== ofOther && again.base !== other)
        #expect(ofOther.base === other)
    }
}
