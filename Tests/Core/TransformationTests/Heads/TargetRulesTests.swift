import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Path and query rules of a route, over request targets")
struct TargetRulesTests {
    private func target(
        _ target: String, method: String = "GET", by rules: (inout RequestRules) -> Void
    ) throws -> String? {
        let lines = try rewritten(
            ["\(method) \(target) HTTP/1.1", "Host: h", "A:  1"], by: rules)
        guard let lines else { return nil }
        #expect(lines.dropFirst() == ["Host: h", "A:  1"])
        return String(lines[0].dropFirst(method.count + 1).dropLast(" HTTP/1.1".count))
    }

    @Test(
        arguments: [
            ("/a", "/b", "/a", "/b"), ("/a", "/b", "/a/c/d", "/b/c/d"), ("/a", "/b", "/a/", "/b/"),
            ("/a", "/b", "/ab", nil), ("/a", "/b", "/A", nil), ("/a", "/b", "/", nil),
            ("/a", "/b", "/a?x=/a", "/b?x=/a"), ("/a", "/b", "/x?/a", nil),
            ("/a", "/", "/a", "/"), ("/a", "/", "/a/c", "/c"), ("/a", "/", "/a?q", "/?q"),
            ("/a", "/b/", "/a", "/b/"), ("/a", "/b/", "/a/c", "/b/c"),
            ("/a/", "/b/", "/a", nil), ("/a/", "/b/", "/a/c", "/b/c"), ("/a/", "/b", "/a/", "/b/"),
            ("/", "/b", "/", "/b/"), ("/", "/b", "/c", "/b/c"), ("/", "/b/", "/c?d", "/b/c?d"),
            ("/a", "/a", "/a/c", nil), ("/a/b", "/c", "/a/b/d", "/c/d"), ("/a/b", "/c", "/a", nil),
            ("/ü", "/ö x", "/%C3%BC/d", "/%C3%B6%20x/d"), ("/a?b", "/c", "/a%3Fb", "/c"),
            ("/a", "/b", "/%61", nil), ("/a", "/b", "//a", nil), ("/a", "/b", "/a//c", "/b//c"),
            ("/a", "/b", "http://h/a/c?d", "http://h/b/c?d"),
            ("/", "/b", "http://h", "http://h/b/"),
            ("/", "/b", "http://h?q", "http://h/b/?q"), ("/a", "/b", "http://h", nil),
            ("/a", "/b", "https://h:444/a", "https://h:444/b"),
            ("/a", "/b", "http://a/x", nil),
        ] as [(String, String, String, String?)])
    func `a beginning of whole segments is replaced, in the form that the target has`(
        prefix: String, replacement: String, from: String, to: String?
    ) throws {
        #expect(
            try target(from) { $0.pathPrefixes = [.init(prefix, replacement)] } == to)
    }

    @Test func `the first that fits is replaced, and nothing after it`() throws {
        let prefixes: [PrefixReplacement] = [
            .init("/a/b", "/x"), .init("/a", "/y"), .init("/y", "/z"), .init("/x", "/x"),
            .init("/", "/rest"),
        ]
        for (from, to) in [
            ("/a/b/c", "/x/c"), ("/a/c", "/y/c"), ("/y", "/z"), ("/x", nil), ("/q", "/rest/q"),
        ] {
            #expect(try target(from) { $0.pathPrefixes = prefixes } == to)
        }
    }

    @Test func `targets that have no path are not changed`() throws {
        for from in ["*", "http://h"] {
            #expect(
                try target(from, method: "OPTIONS") {
                    $0.pathPrefixes = [.init("/", "/b")]
                    $0.query.add = [.init("a", "b")]
                } == nil)
        }
        #expect(
            try target("http://h/", method: "OPTIONS") { $0.pathPrefixes = [.init("/", "/b")] }
                == "http://h/b/")
    }

    @Test(
        arguments: [
            ("/?a=1&b=2", "/?b=2"), ("/?a", "/"), ("/?a=", "/"), ("/?a=1", "/"), ("/?b", nil),
            ("/", nil), ("/?", nil), ("/?A=1", nil), ("/?%61=1&b", "/?b"), ("/?aa=1&a=2", "/?aa=1"),
            ("/?b=+%2b%zz&a&c=%", "/?b=+%2b%zz&c=%"), ("/?&a&&", "/?&&"), ("/?b?a=1", nil),
            ("/?x=a&a=x=a", "/?x=a"), ("http://h?a", "http://h"), ("http://h?a&b", "http://h?b"),
            ("/?%=1", nil), ("/?%6=1", nil), ("/?a%", nil),
        ] as [(String, String?)])
    func `parameters are removed, and others keep their bytes`(from: String, to: String?) throws {
        #expect(try target(from) { $0.query.remove = ["a"] } == to)
    }

    @Test(
        arguments: [
            ("/?old+n%61me=1+2", "/?new%20%C3%BC=1+2"), ("/?old%20name&b", "/?new%20%C3%BC&b"),
            ("/?old+name=&old+name==", "/?new%20%C3%BC=&new%20%C3%BC=="), ("/?oldname", nil),
        ] as [(String, String?)])
    func `parameters are renamed, with their values as they were`(
        from: String, to: String?
    ) throws {
        #expect(try target(from) { $0.query.rename = [.init("old name", "new ü")] } == to)
    }

    @Test(
        arguments: [
            ("/", "/?k%5B%5D=%26/?%20%2B"), ("/?", "/?k%5B%5D=%26/?%20%2B"),
            ("/?a", "/?a&k%5B%5D=%26/?%20%2B"),
            ("/?k[]=1&a&k%5b%5d=2", "/?k%5B%5D=%26/?%20%2B&a"),
            ("/?k%5B%5D=%26/?%20%2B", nil), ("http://h", "http://h?k%5B%5D=%26/?%20%2B"),
        ] as [(String, String?)])
    func `a parameter is set once, where its first one was, by AFNetworking's escapes`(
        from: String, to: String?
    ) throws {
        #expect(try target(from) { $0.query.set = [.init("k[]", "&/? +")] } == to)
    }

    @Test(
        arguments: [
            ("/", "/?a=1&d="), ("/?a=0", "/?a=0&a=1&d="), ("/?d", "/?d&a=1"),
            ("/?%64=1", "/?%64=1&a=1"), ("/?b&", "/?b&&a=1&d="),
        ] as [(String, String?)])
    func `parameters are added, and defaults where there are none`(
        from: String, to: String?
    ) throws {
        #expect(
            try target(from) {
                $0.query.add = [.init("a", "1")]
                $0.query.defaults = [.init("d", "")]
            } == to)
    }

    @Test func `an empty name is that of a parameter, not of nothing`() throws {
        #expect(try target("/?&a&=1") { $0.query.remove = [""] } == "/?&a")
        #expect(try target("/?&a") { $0.query.remove = [""] } == nil)
    }

    @Test func `path and query are changed together`() throws {
        #expect(
            try target("/a?x=1") {
                $0.pathPrefixes = [.init("/a", "/b")]
                $0.query.rename = [.init("x", "y")]
                $0.query.set = [.init("y", "2")]
            } == "/b?y=2")
    }

    @Test func `a long query is changed in time`() throws {
        let pairs = (0..<40_000).map { "p\($0 % 7)=\($0)" }
        let expected = pairs.filter { !$0.hasPrefix("p3=") }.joined(separator: "&")
        #expect(
            try target("/?" + pairs.joined(separator: "&")) { $0.query.remove = ["p3"] }
                == "/?" + expected)
    }
}
