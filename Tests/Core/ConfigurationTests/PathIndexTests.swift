import PinfoldConfiguration
import Testing

@Suite("The index of path patterns")
struct PathIndexTests {
    private func match(_ target: String, _ lists: [[String]]) throws -> PathIndex.Match {
        let index = PathIndex(try lists.map { try $0.map { try PathPattern($0) } })
        let bytes = Array(target.utf8)
        return index.match(bytes.span)
    }

    private static let lists = [
        ["/static/**"], ["/api/v1/items", "/api/v2/*"], ["/a/*/c"], ["/**/img/*.png"], ["/"],
        ["/very/long/prefix/of/a/path/**"], ["/x*"],
    ]

    @Test(
        arguments: [
            ("/static", 0), ("/static/", 0), ("/static/a/b.css", 0), ("/static?x=1", 0),
            ("/static/a?/img/x.png", 0), ("/statics", nil), ("/stati", nil), ("/Static/a", nil),
            ("/api/v1/items", 1), ("/api/v1/items?id=1", 1), ("/api/v1/items/", nil),
            ("/api/v2/", 1), ("/api/v2/x", 1), ("/api/v2/x/y", nil), ("/api/v2", nil),
            ("/a/b/c", 2), ("/a/b/d", nil), ("/img/x.png", 3), ("/q/img/x.png", 3),
            ("/q/img/x.gif", nil), ("/", 4), ("", 4), ("?a", 4), ("/?a=/static/", 4),
            ("/very/long/prefix/of/a/path", 5), ("/very/long/prefix/of/a/path/x", 5),
            ("/very/long/prefix/of/a/pat", nil), ("/very/long/prefix/of/b/path", nil),
            ("/x", 6), ("/xyz", 6), ("/xyz/a", nil), ("*", nil),
        ] as [(String, Int?)])
    func `the first list with a pattern for the path is found`(target: String, list: Int?) throws {
        #expect(try match(target, Self.lists) == (list.map { .list($0) } ?? .none))
    }

    @Test(
        arguments: [
            ("/static/../account", PathIndex.Match.ambiguous),
            ("/static/%2e%2e/account", .ambiguous),
            ("/static/..%2faccount", .ambiguous), ("/static/..%5caccount", .ambiguous),
            ("/account;/static/a", .none), ("/account%3f/static/x.css", .none),
            ("/static/a%20b", .list(0)), ("/static//a", .list(0)), ("/static/./a", .list(0)),
            ("/%73tatic/a", .ambiguous), ("//static/a", .ambiguous), ("/static;x/a", .ambiguous),
            ("/static/%2525252525252e", .ambiguous), ("/other/%20", .none),
            ("/other?/static/../%2e", .none), ("/static/a?..//%", .list(0)),
            ("/account/..;/static/a", .ambiguous), ("/static\\..\\account", .none),
        ])
    func `a path that servers may read in several ways has a list only if all are in it`(
        target: String, expected: PathIndex.Match
    ) throws {
        #expect(try match(target, [["/static/**"]]) == expected)
    }

    @Test func `it agrees with the patterns themselves for every plain path`() throws {
        let patterns = [
            "/**", "/a", "/a/**", "/a/b", "/ab*", "/*/b/**", "/**/c", "/aaaaaaaa", "/aaaaaaaa/**",
            "/aaaaaaa/*", "/a*a/b", "/aaaaaaab",
        ]
        let parsed = try patterns.map { try PathPattern($0) }
        let indices = parsed.map { PathIndex([[$0]]) }
        let segments = [
            "a", "b", "c", "ab", "aa", "aaaaaaa", "aaaaaaaa", "aaaaaaab", "abcdefghi", "",
        ]
        var paths: [String] = []
        for first in segments {
            paths.append("/" + first)
            guard !first.isEmpty else { continue }
            for second in segments {
                paths.append("/\(first)/\(second)")
                guard !second.isEmpty else { continue }
                for third in segments { paths.append("/\(first)/\(second)/\(third)") }
            }
        }
        for path in paths {
            for query in ["", "?", "?a=b", "?/a/b//%"] {
                let bytes = Array(path.utf8)
                let target = Array((path + query).utf8)
                for (index, pattern) in zip(indices, parsed) {
                    let expected = pattern.matches(bytes.span)
                    let found = index.match(target.span) == .list(0)
                    #expect(found == expected, "\(pattern) \(path)\(query)")
                }
            }
        }
    }

    @Test func `it finds each of many patterns, and the first where several match`() throws {
        // Bytes with the same low bits, and more patterns than a word has bits.
        let names = ["a", "!", "b", "\"", "~", ">"].flatMap { letter in
            (0..<40).map { "\(letter)\($0)" }
        }
        var lists = names.map { ["/\($0)/**", "/other-\($0)"] }
        lists.append(["/**/*.css"])
        lists.append(["/a7/later", "/new"])
        for (index, name) in names.enumerated() {
            for path in ["/\(name)", "/\(name)/x.css", "/other-\(name)", "/\(name)/later"] {
                #expect(try match(path, lists) == .list(index), "\(path)")
            }
        }
        #expect(try match("/c/x.css", lists) == .list(names.count))
        #expect(try match("/new", lists) == .list(names.count + 1))
        for path in ["/", "", "/c", "/a", "/a40", "/\u{1}1", "/?/a1/x"] {
            #expect(try match(path, lists) == .none, "\(path)")
        }
        #expect(try match("/a1", []) == .none)
    }

    @Test func `it takes every byte that makes a path unclear for what it is`() throws {
        // At every place of a word, and behind it.
        for length in 1...20 {
            for unclear in ["%61", ";", "\\", "//", "/."] {
                for place in 0..<length {
                    var path = Array(repeating: "a", count: length)
                    path[place] = unclear
                    let target = Array(("/" + path.joined()).utf8)
                    let isPlain = PathForms.isPlain(target.span)
                    #expect(!isPlain)
                    let match = PathIndex([[try PathPattern("/nothing")]]).match(target.span)
                    #expect(match == .none || match == .ambiguous)
                    let all = PathIndex([[try PathPattern("/**")]]).match(target.span)
                    #expect(all == .list(0), "\(path)")
                }
            }
        }
    }
}
