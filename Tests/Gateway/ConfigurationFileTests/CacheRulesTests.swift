import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("What entries of hosts and their paths say about the cache")
struct CacheRulesTests {
    private static let everything = """
        hosts:
          - match: [a]
            cache:
              store: true
              key:
                query: { ignore: [utm_*, fbclid], sort: true }
                fields: { add: [X-Tenant], ignore: [User-Agent], normalise: [Accept-Encoding] }
              freshness:
                default: 1h
                minimum: 1m
                maximum: 1d
                byStatus: { "404": 30s, 5xx: 0s }
                overrides: [noStore, private, noCache, mustRevalidate, requestNoCache,
                  requestCookie]
              setCookie: strip
              staleIfError: 1d
              staleWhenUnreachable: 7d
              bypass: { fields: [X-Preview], cookies: [session*], query: [nocache] }
              offline: false
              compress: [text/*, Application/JSON]
              tags: [X-Tags]
              passTags: false
              targetedField: [Edge-Control, CDN-Cache-Control]
            paths:
              - match: [/static/**, "/*.css"]
                cache: { freshness: { default: 2h }, key: [X-Other], targetedField: X-CDN }
              - match: [/live]
                cache: { store: false, offline: true }
        """

    @Test func `every key is read`() throws {
        let entry = try load(Self.everything).hosts.entries[0]
        let cache = entry.cache
        #expect(cache.stores == true)
        #expect(cache.key.fields == ["x-tenant"])
        #expect(cache.key.ignoredFields == ["user-agent"])
        #expect(cache.key.normalizedFields == ["accept-encoding"])
        #expect(cache.key.ignoredParameters?.map(\.description) == ["utm_*", "fbclid"])
        #expect(cache.key.keptParameters == nil && cache.key.sortsParameters == true)
        #expect(cache.freshness.defaultSeconds == 3600 && cache.freshness.minimumSeconds == 60)
        #expect(cache.freshness.maximumSeconds == 86400)
        #expect(cache.freshness.byStatus?.seconds(for: 404) == 30)
        #expect(cache.freshness.byStatus?.seconds(for: 502) == 0)
        #expect(cache.freshness.byStatus?.seconds(for: 403) == nil)
        #expect(cache.freshness.overrides?.names.count == 6)
        #expect(cache.setCookie == .strip)
        #expect(cache.staleIfErrorSeconds == 86400 && cache.staleWhenUnreachableSeconds == 604_800)
        #expect(cache.bypass.fields == ["x-preview"])
        #expect(cache.bypass.cookies?.map(\.description) == ["session*"])
        #expect(cache.bypass.parameters?.map(\.description) == ["nocache"])
        #expect(cache.isOffline == false)
        #expect(cache.compress?.map(\.description) == ["text/*", "application/json"])
        #expect(cache.tagFields == ["X-Tags"] && cache.passesTags == false)
        #expect(cache.targetedFields == ["Edge-Control", "CDN-Cache-Control"])
        #expect(
            entry.paths.map { $0.match.map(\.description) } == [
                ["/static/**", "/*.css"], ["/live"],
            ])
    }

    @Test func `what a path does not say is as in its entry, key by key`() throws {
        let entry = try load(Self.everything).hosts.entries[0]
        let first = entry.cacheRules(path: 0)
        #expect(first.freshness.defaultSeconds == 7200 && first.freshness.minimumSeconds == 60)
        #expect(first.key.fields == ["x-other"] && first.key.sortsParameters == true)
        #expect(first.targetedFields == ["X-CDN"] && first.setCookie == .strip)
        let second = entry.cacheRules(path: 1)
        #expect(second.stores == false && second.isOffline == true)
        #expect(second.freshness == entry.cache.freshness)
        #expect(entry.cacheRules(path: nil) == entry.cache)
    }

    @Test(arguments: [
        everything, "hosts: [{ match: [a], cache: { key: [b] } }]", "hosts: [{ match: [a] }]",
    ])
    func `what is printed says the same`(text: String) throws {
        let snapshot = try load(text)
        #expect(try load(snapshot.effectiveYAML()).hosts == snapshot.hosts)
    }

    @Test(arguments: [
        Wrong(
            "hosts: [{ match: [a], paths: {} }]",
            "1: hosts[0].paths: is a mapping; expected a list of paths with match"),
        Wrong(
            "hosts: [{ match: [a], paths: [{}] }]",
            "1: hosts[0].paths[0].match: is missing; expected a list of path patterns"),
        Wrong(
            "hosts: [{ match: [a], paths: [{ match: [] }] }]",
            "1: hosts[0].paths[0].match: matches nothing; expected a list of path patterns"),
        Wrong(
            "hosts: [{ match: [a], paths: [{ match: [a] }] }]",
            "1: hosts[0].paths[0].match[0]: \"a\" is not a path pattern: a path begins with '/'; "
                + "expected a path such as /v1/items, /v1/* or /v1/**"),
        Wrong(
            "hosts: [{ match: [a], paths: [{ match: [/a], cache: { form: origin } }] }]",
            "1: hosts[0].paths[0].cache.form: unknown key; expected one of store, key, fill, "
                + "slice, "
                + "freshness, setCookie, staleIfError, staleWhenUnreachable, bypass, offline, "
                + "compress, tags, passTags, targetedField"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { default: 1 } } }]",
            "1: hosts[0].cache.freshness.default: \"1\" is not valid (did you mean 1s?); "
                + "expected a "
                + "duration from 0s to 3650d, with ms, s, m, h or d"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { byStatus: { abc: 1s } } } }]",
            "1: hosts[0].cache.freshness.byStatus.abc: \"abc\" is not valid; expected a status "
                + "such "
                + "as 404, or a class such as 4xx"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { byStatus: { 401: 1s } } } }]",
            "1: hosts[0].cache.freshness.byStatus.401: a response with status 401 is about one "
                + "request only, and is never stored; expected a status such as 404, or a class "
                + "such as 4xx"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { overrides: [nostore] } } }]",
            "1: hosts[0].cache.freshness.overrides[0]: \"nostore\" is not valid; expected one of "
                + "noStore, private, noCache, mustRevalidate, requestNoCache, requestCookie"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { minimum: 2s, maximum: 1s } } }]",
            "1: hosts[0].cache.freshness.minimum: 2s exceeds the maximum, 1s; expected a minimum "
                + "that is not longer than the maximum"),
        Wrong(
            "hosts: [{ match: [a], cache: { freshness: { minimum: 2s } }, "
                + "paths: [{ match: [/a], cache: { freshness: { maximum: 1s } } }] }]",
            "1: hosts[0].paths[0].cache.freshness: 2s exceeds the maximum, 1s; expected a minimum "
                + "that is not longer than the maximum"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: { query: { ignore: [a], keep: [b] } } } }]",
            "1: hosts[0].cache.key.query: has ignore and keep; expected only one of the two"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: { query: { ignore: ['a b'] } } } }]",
            "1: hosts[0].cache.key.query.ignore[0]: \"a b\" is not valid; expected a name such "
                + "as id "
                + "or utm_*, not percent-encoded"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: { fields: { ignore: [Cookie] } } } }]",
            "1: hosts[0].cache.key.fields.ignore: \"cookie\" cannot be ignored: what is for one "
                + "client would be sent to others; expected other fields"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: { fields: { normalise: [Accept] } } } }]",
            "1: hosts[0].cache.key.fields.normalise: the meaning of \"accept\" is not known; "
                + "expected "
                + "Accept-Encoding or Accept-Language"),
        Wrong(
            "hosts: [{ match: [a], cache: { key: { fields: { add: [b], ignore: [b] } } } }]",
            "1: hosts[0].cache.key: \"b\" is added to the key and ignored in it; expected one "
                + "of the "
                + "two"),
        Wrong(
            "hosts: [{ match: [a], cache: { compress: [text] } }]",
            "1: hosts[0].cache.compress[0]: \"text\" is not valid; expected a media type such as "
                + "text/html or text/*"),
        Wrong(
            "hosts: [{ match: [a], cache: { tags: [a b] } }]",
            "1: hosts[0].cache.tags[0]: \"a b\" is not valid; expected the name of a response "
                + "header "
                + "field"),
        Wrong(
            "hosts: [{ match: [a], cache: { targetedField: [a, A] } }]",
            "1: hosts[0].cache.targetedField[1]: the field \"A\" is listed twice; expected "
                + "each once"
        ),
        Wrong(
            "hosts: [{ match: [a], cache: { targetedField: [a, b, c, d, e] } }]",
            "1: hosts[0].cache.targetedField: has 5 fields; expected at most 4"),
        Wrong(
            "hosts: [{ match: [a], cache: { bypass: { cookies: "
                + "[\((0..<65).map { "a\($0)" }.joined(separator: ", "))] } } }]",
            "1: hosts[0].cache.bypass.cookies: has 65 entries; expected at most 64 names of cookies"
        ),
    ])
    func `a wrong value is reported with its line, its key and what was expected`(wrong: Wrong) {
        #expect(errors(of: wrong.text) == wrong.lines)
    }

    @Test(
        arguments: [
            (
                "freshness: { overrides: [noStore] }", "freshness.overrides",
                "noStore of responses does not count"
            ),
            (
                "freshness: { overrides: [private, noCache, requestCookie] }",
                "freshness.overrides", "private, noCache of responses do not count"
            ),
            (
                "freshness: { minimum: 1s }", "freshness.minimum",
                "responses are used for longer than they state"
            ),
            (
                "freshness: { byStatus: { 5xx: 1s } }", "freshness.byStatus",
                "responses are stored that neither state a lifetime nor have a status that allows "
                    + "one to be assumed"
            ),
            (
                "key: { fields: { ignore: [User-Agent] } }", "key.fields.ignore",
                "responses are used for requests for which their Vary excludes them"
            ),
            (
                "key: { query: { ignore: [a] } }", "key.query",
                "responses are used for URIs other than their own"
            ),
            ("setCookie: strip", "setCookie", "responses are stored without some of their fields"),
            ("offline: true", "offline", "responses are used however old they are"),
        ])
    func `what leaves the RFC is said`(keys: String, key: String, text: String) throws {
        let expected =
            "gateway.yaml:1: hosts[0].cache.\(key): \(text), which is outside RFC 9111"
        #expect(
            try warnings(of: "hosts: [{ match: [a], cache: { \(keys) } }]")
                .filter { $0.contains("RFC") } == [expected])
        #expect(
            try warnings(
                of: "hosts: [{ match: [a], paths: [{ match: [/a], cache: { \(keys) } }] }]"
            )
            .filter { $0.contains("RFC") } == [
                expected.replacing(".cache.", with: ".paths[0].cache.")
            ])
    }

    @Test(
        arguments: [
            "freshness: { default: 1h, maximum: 1d, byStatus: { 404: 30s, 5xx: 0s } }",
            "freshness: { minimum: 0s, overrides: [requestNoCache, requestCookie] }",
            "key: { fields: { normalise: [Accept-Encoding, Accept-Language], add: [A] } }",
            "setCookie: never, staleIfError: 1d, staleWhenUnreachable: 7d, offline: false",
            "bypass: { fields: [A], cookies: [a], query: [b] }, targetedField: A, tags: [B]",
        ])
    func `nothing is said about what the RFC allows`(keys: String) throws {
        #expect(
            try warnings(of: "hosts: [{ match: [a], cache: { \(keys) } }]")
                .filter { $0.contains("RFC") } == [])
    }

    @Test func `cookies for all are warned about`() throws {
        #expect(
            try warnings(of: "hosts: [{ match: [a], cache: { setCookie: always } }]").contains(
                "gateway.yaml:1: hosts[0].cache.setCookie: the cookies that a server sets for one "
                    + "client are sent to all others"))
    }

    @Test func `a path that an earlier one covers is warned about`() throws {
        let text = "hosts: [{ match: [a], paths: [{ match: [/a, /b] }, { match: [/b] }] }]"
        #expect(
            try warnings(of: text).contains(
                "gateway.yaml:1: hosts[0].paths[1]: never applies: the entry for /a before it has "
                    + "the same paths"))
    }
}
