import CLinux
import Files
import TestSupport
import Testing

@Suite("Patterns of paths")
struct PathPatternTests {
    private static let files = [
        "a.yaml", "b.yaml", "B.yaml", "a.yml", ".hidden.yaml", "a.yaml~", "d/a.yaml", "d/c.yaml",
        "e/a.yaml", ".f/a.yaml", "d/d/a.yaml", "[x]", "a\\b",
    ]

    @Test(
        arguments: [
            ("*.yaml", ["B.yaml", "a.yaml", "b.yaml"]),
            (
                "?.y*ml",
                [
                    "B.yaml", "a.yaml", "a.yml",
                    "b.yaml",
                ]
            ),
            ("[a-b].yaml", ["a.yaml", "b.yaml"]), ("[!b].yaml", ["B.yaml", "a.yaml"]),
            (".*.yaml", [".hidden.yaml"]), ("*/a.yaml", ["d/a.yaml", "e/a.yaml"]),
            ("*/*/a.yaml", ["d/d/a.yaml"]), ("d/*.yaml", ["d/a.yaml", "d/c.yaml"]),
            (".f/*", [".f/a.yaml"]), ("d/../[e]/a.yaml", ["d/../e/a.yaml"]),
            (
                "d//*",
                [
                    "d/a.yaml",
                    "d/c.yaml", "d/d",
                ]
            ),
            ("none/*", []), ("a.yaml/*", []), ("*.none", []), ("*/none", []), ("*/none/a", []),
            ("[[]x]", ["[x]"]), ("[a]\\b", ["a\\b"]), ("[", []),
        ] as [(String, [String])])
    func `match in the order of the bytes`(pattern: String, expected: [String]) throws {
        let folder = TemporaryFolder()
        for file in Self.files {
            let parts = file.split(separator: "/")
            for count in 1..<max(1, parts.count) {
                mkdir(folder.path + "/" + parts.prefix(count).joined(separator: "/"), 0o755)
            }
            let descriptor = creat(folder.path + "/" + file, 0o644)
            #expect(descriptor >= 0)
            close(descriptor)
        }
        let found = try PathPattern(pattern, in: folder.path).matches(most: 100)
        #expect(found == expected)
        let absolute = try PathPattern(folder.path + "/" + pattern, in: "/none").matches(most: 100)
        #expect(
            absolute
                == expected.map { folder.path + "/" + $0 }
                .map { $0.replacing("//", with: "/") })
    }

    @Test func `are told from names`() {
        for text in ["*", "a?", "[a]/b", "["] { #expect(PathPattern(text, in: "/").isPattern) }
        for text in ["a", "", "a\\b", "~", "{a,b}"] {
            #expect(!PathPattern(text, in: "/").isPattern)
        }
    }

    @Test func `match no more than is wanted`() {
        let folder = TemporaryFolder()
        for name in 0..<4 { close(creat("\(folder.path)/\(name)", 0o644)) }
        #expect(throws: PathPatternError.tooMany) {
            try PathPattern("*", in: folder.path).matches(most: 3)
        }
        #expect((try? PathPattern("*", in: folder.path).matches(most: 4))?.count == 4)
    }

    @Test func `name the folders that they search`() {
        let folder = TemporaryFolder()
        for name in ["a", "b"] { mkdir("\(folder.path)/\(name)", 0o755) }
        let found = PathPattern("*/./[x]", in: folder.path).searched(most: 10)
        #expect(found.map(\.names) == ["*", "[x]", "[x]"])
        #expect(PathPattern("a/c/*/d/?", in: "/x").base == "/x/a/c")
        #expect(PathPattern("/a/[b]", in: "/x").base == "/a")
        #expect(PathPattern("*", in: "/x").base == "/x/")
        #expect(PathPattern("c/*", in: folder.path).searched(most: 10).isEmpty)
        #expect(
            PathPattern("[ab]/*", in: folder.path).searched(most: 10).map(\.folder)
                == [folder.path + "/.", folder.path + "/a", folder.path + "/b"])
    }
}
