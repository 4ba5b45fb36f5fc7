import Testing

@testable import CachePolicy

private func patterns(_ names: [String]) -> [NamePattern] { names.compactMap(NamePattern.init) }

@Suite("The query in the key")
struct KeyRulesTests {
    private func keyed(
        _ target: String, ignore: [String] = [], keep: [String]? = nil, sort: Bool = false
    ) -> String {
        var rules = KeyRules()
        if !ignore.isEmpty { rules.ignoredParameters = patterns(ignore) }
        rules.keptParameters = keep.map(patterns)
        rules.sortsParameters = sort
        let bytes = Array(target.utf8)
        return text(rules.applied(to: bytes.span))
    }

    @Test(
        arguments: [
            ("/x", "/x"), ("/x?", "/x?"), ("/x?a=1", "/x?a=1"), ("/x?utm_a=1", "/x"),
            ("/x?utm_a=1&b=2", "/x?b=2"), ("/x?b=2&utm_a=1", "/x?b=2"),
            ("/x?a=1&utm_x&b=2&fbclid=9&c", "/x?a=1&b=2&c"), ("/x?utm_", "/x"),
            ("/x?utm", "/x?utm"),
            ("/x?a=utm_x", "/x?a=utm_x"), ("/x?UTM_a=1", "/x?UTM_a=1"),
            ("?utm_a=1", ""), ("/?utm_a=1&&", "/?&"),
            ("/x?a=1?utm_a=2", "/x?a=1?utm_a=2"),
        ])
    func `ignored parameters are no part of it`(target: String, key: String) {
        #expect(keyed(target, ignore: ["utm_*", "fbclid"]) == key)
    }

    @Test(
        arguments: [
            "/x?utm_a=1;b=2", "/x?utm_a=1?b=2", "/x?utm%5Fa=1", "/x?utm_%61=1", "/x?utm_a+b=1",
            "/x?%75tm_a=1", "/x?utm_a;b", "/x?utm_a,b=1",
        ])
    func `a parameter that some server may read as another is never left out`(target: String) {
        #expect(keyed(target, ignore: ["utm_*"]) == target)
    }

    @Test(
        arguments: [
            ("/x?id=1&b=2", "/x?id=1"), ("/x?b=2", "/x"), ("/x?ID=1&b=2", "/x?ID=1"),
            ("/x?b=2&%69d=1", "/x?%69d=1"), ("/x?id%00=1&c=3", "/x?id%00=1"),
            ("/x?+id=1", "/x?+id=1"), ("/x?id[]=1&c=3", "/x?id[]=1"), ("/x?id[a]=1", "/x?id[a]=1"),
            ("/x?c=1;id=2", "/x?c=1;id=2"), ("/x?my.id=1&c=2", "/x?my.id=1"),
            ("/x?my_id=1", "/x?my_id=1"), ("/x?My.Id=1", "/x?My.Id=1"), ("/x?=1", "/x?=1"),
            ("/x?idx=1", "/x"), ("/x?page_2=1", "/x?page_2=1"),
        ])
    func `only parameters that no server takes for one that counts are left out`(
        target: String, key: String
    ) {
        #expect(keyed(target, keep: ["id", "my_id", "page_*"]) == key)
    }

    @Test(
        arguments: [
            ("/x?b=1&a=2", "/x?a=2&b=1"), ("/x?a=2&b=1", "/x?a=2&b=1"),
            ("/x?a=2&a=1", "/x?a=2&a=1"), ("/x?b&a=2&a=1", "/x?a=2&a=1&b"),
            ("/x?A=1&a=2", "/x?A=1&a=2"), ("/x?a=2&A=1", "/x?a=2&A=1"),
            ("/x?b=1&a.x=2&a_x=3", "/x?a.x=2&a_x=3&b=1"),
            ("/x?b=1&a[2]=2&a[1]=3", "/x?a[2]=2&a[1]=3&b=1"),
            ("/x", "/x"),
        ])
    func `the order of parameters with one name stays, whatever it is taken for`(
        target: String, key: String
    ) {
        #expect(keyed(target, sort: true) == key)
    }

    @Test(
        arguments: [
            "/x?b=1&a=2;b=3", "/x?b=1&%61=2", "/x?b=1&+a=2", "/x?b=1&a[=2", "/x?b=1&a]=2",
            "/x?b=1&&a=2", "/x?b=1&=2", "/x?b=1&a[b[c]]=2",
        ])
    func `a query whose parameters servers may tell apart in other ways keeps its order`(
        target: String
    ) {
        #expect(keyed(target, sort: true) == target)
    }

    @Test(
        arguments: [
            "/x?b=1&utm_a=2&a=3", "/x?utm_a=1", "/x?c&b&a&fbclid", "/x?b=1&a=2;b=3&utm_x=1",
        ])
    func `the key of a key is that key`(target: String) {
        let once = keyed(target, ignore: ["utm_*", "fbclid"], sort: true)
        #expect(keyed(once, ignore: ["utm_*", "fbclid"], sort: true) == once)
    }

    @Test(arguments: 0..<8) func `the key of any key is that key`(seed: Int) {
        var random = SystemRandomNumberGenerator()
        let pieces = [
            "a", "b", "utm_a", "A", "=", "&", "&", "=1", "[", "]", ".", ";", "%61", "?", "+",
        ]
        for _ in 0..<500 {
            let query = (0..<Int.random(in: 0..<12, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            let keep = seed & 1 == 0 ? nil : ["a", "utm_*"]
            let ignore = seed & 2 == 0 || keep != nil ? [] : ["utm_*", "b"]
            let sort = seed & 4 != 0
            let once = keyed("/x?\(query)", ignore: ignore, keep: keep, sort: sort)
            #expect(keyed(once, ignore: ignore, keep: keep, sort: sort) == once, "\(query)")
        }
    }

    @Test func `a query with too many parameters stays as it is`() {
        let most = Array(repeating: "utm_a", count: 256).joined(separator: "&")
        #expect(keyed("/x?\(most)", ignore: ["utm_*"]) == "/x")
        #expect(keyed("/x?\(most)&utm_a", ignore: ["utm_*"]) == "/x?\(most)&utm_a")
        #expect(keyed("/x?\(most)&a", sort: true) == "/x?\(most)&a")
    }

    @Test func `without rules it stays as it is`() {
        #expect(keyed("/x?b=1&a=2;%&&") == "/x?b=1&a=2;%&&")
        #expect(KeyRules().leavesQuery)
    }

    @Test func `what a path does not say is as in its entry`() {
        var entry = KeyRules()
        entry.fields = ["x-tenant"]
        entry.sortsParameters = true
        var path = KeyRules()
        path.fields = []
        path.ignoredParameters = patterns(["a"])
        let both = path.over(entry)
        #expect(both.fields == [] && both.sortsParameters == true)
        #expect(both.ignoredParameters?.map(\.description) == ["a"])
    }

    @Test(arguments: ["", "a b", "a&b", "a=b", "%61", "ä", String(repeating: "a", count: 129)])
    func `a name has only characters that are written as they are`(text: String) {
        #expect(NamePattern(text) == nil)
    }
}

@Suite("Conditions that bypass the cache")
struct BypassConditionsTests {
    private var conditions: BypassConditions {
        var conditions = BypassConditions()
        conditions.parameters = patterns(["nocache", "preview_*"])
        conditions.cookies = patterns(["session*", "auth"])
        return conditions
    }

    @Test(
        arguments: [
            ("/x", false), ("/x?a=1", false), ("/x?nocache", true), ("/x?a=1&nocache=1", true),
            ("/x?NOCACHE=1", true), ("/x?%6Eocache=1", true), ("/x?a=1;nocache", true),
            ("/x?a=nocache", false), ("/x?preview_=1", true), ("/nocache", false),
            ("/x?nocache1", false),
        ])
    func `a parameter is found however it is written`(target: String, isMet: Bool) {
        let bytes = Array(target.utf8)
        let found = conditions.areMet(byQueryOf: bytes.span)
        #expect(found == isMet)
    }

    @Test(
        arguments: [
            ("a=1", false), ("session=1", true), ("a=1; session_id=2", true), ("a=1;auth=2", true),
            ("auth", true), ("Auth=1", false), ("xauth=1", false), ("a=session", false),
            ("  auth = 1", true), ("", false), (";", false),
        ])
    func `a cookie is found by its name`(value: String, isMet: Bool) {
        let bytes = Array(value.utf8)
        let found = conditions.areMet(byCookies: bytes.span)
        #expect(found == isMet)
    }

    @Test func `more than can be looked at counts as met`() {
        let many = Array(repeating: "a=1", count: 257)
        let query = Array("/x?\(many.joined(separator: "&"))".utf8)
        let cookies = Array(many.joined(separator: "; ").utf8)
        let byQuery = conditions.areMet(byQueryOf: query.span)
        let byCookies = conditions.areMet(byCookies: cookies.span)
        #expect(byQuery && byCookies)
    }

    @Test func `without any none is met`() {
        let bytes = Array("/x?a=1".utf8)
        let found = BypassConditions().areMet(byQueryOf: bytes.span)
        let cookies = BypassConditions().areMet(byCookies: bytes.span)
        #expect(!found && !cookies)
    }
}
