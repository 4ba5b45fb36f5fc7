import HTTPCore
import Testing

@Suite("A URI reference")
struct URIReferenceTests {
    /// Every text of these characters with at most this many.
    private func texts(of characters: String, count: Int) -> [String] {
        var all = [""]
        var last = [""]
        for _ in 0..<count {
            last = last.flatMap { text in characters.map { "\(text)\($0)" } }
            all += last
        }
        return all
    }

    private func resolved(_ text: String, _ base: String) -> String? {
        guard let reference = URIReference(text), let base = URIReference(base) else { return nil }
        return reference.resolved(against: base).description
    }

    @Test(
        arguments: [
            ("http://u@h:1/a/b?c?d/e#f#g?", "http", "u@h:1", "/a/b", "c?d/e", "f#g?"),
            ("HTTP:", "http", nil, "", nil, nil), ("a+1-.:b:c", "a+1-.", nil, "b:c", nil, nil),
            ("//h", nil, "h", "", nil, nil), ("//", nil, "", "", nil, nil),
            ("///p", nil, "", "/p", nil, nil), ("x:///p", "x", "", "/p", nil, nil),
            ("?", nil, nil, "", "", nil), ("#", nil, nil, "", nil, ""),
            ("?#", nil, nil, "", "", ""), ("#?", nil, nil, "", nil, "?"),
            ("a?b:c", nil, nil, "a", "b:c", nil), ("/a:b", nil, nil, "/a:b", nil, nil),
            ("./a:b", nil, nil, "./a:b", nil, nil),
            ("ü/\u{301}?ü", nil, nil, "ü/\u{301}", "ü", nil),
        ] as [(String, String?, String?, String, String?, String?)])
    func `has the parts of appendix B`(
        text: String, scheme: String?, authority: String?, path: String, query: String?,
        fragment: String?
    ) throws {
        let reference = try #require(URIReference(text))
        #expect(reference.scheme == scheme && reference.authority == authority)
        #expect(reference.path == path && reference.query == query)
        #expect(reference.fragment == fragment)
    }

    @Test func `is written as it was read, and is none if a colon follows what is no scheme`() {
        for text in texts(of: "a1:/?#", count: 6) {
            let reference = URIReference(text)
            let first = text.prefix { !"/?#".contains($0) }
            let scheme = first.firstIndex(of: ":").map { first[..<$0] }
            let isNone = scheme.map { $0.first != "a" } ?? false
            guard (reference == nil) == isNone, isNone || reference?.description == text else {
                Issue.record("\(text): \(reference?.description ?? "none")")
                return
            }
        }
    }

    /// The steps of RFC 3986 §5.2.4 as they are written there.
    private func withoutDotSegments(_ path: String) -> String {
        var (input, output) = (path, "")
        func removeLast() { output = output.lastIndex(of: "/").map { String(output[..<$0]) } ?? "" }
        while !input.isEmpty {
            if input.hasPrefix("../") {
                input.removeFirst(3)
            } else if input.hasPrefix("./") || input.hasPrefix("/./") {
                input.removeFirst(2)
            } else if input == "/." {
                input = "/"
            } else if input.hasPrefix("/../") {
                input.removeFirst(3)
                removeLast()
            } else if input == "/.." {
                input = "/"
                removeLast()
            } else if input == "." || input == ".." {
                input = ""
            } else {
                let end = input.dropFirst().firstIndex(of: "/") ?? input.endIndex
                output += input[..<end]
                input = String(input[end...])
            }
        }
        return output
    }

    @Test func `has no dot segments once it is resolved`() {
        for text in texts(of: "a./", count: 8) where !text.hasPrefix("/") {
            let expected = withoutDotSegments("/" + text)
            guard resolved("/" + text, "x://h/b/c") == "x://h\(expected)",
                resolved("x:/\(text)", "y:") == "x:\(expected)"
            else {
                Issue.record("/\(text): \(resolved("/" + text, "x://h/b/c") ?? "none")")
                return
            }
            let below = withoutDotSegments("/b/" + text)
            guard text.isEmpty || resolved(text, "x://h/b/c?q") == "x://h\(below)" else {
                Issue.record("\(text): \(resolved(text, "x://h/b/c?q") ?? "none")")
                return
            }
        }
    }

    @Test(
        arguments: [
            ("", "x://h/b/c?q#f", "x://h/b/c?q"), ("#g", "x://h/b/c?q#f", "x://h/b/c?q#g"),
            ("?", "x://h/b/c?q", "x://h/b/c?"), ("?r", "x://h", "x://h?r"),
            ("a", "x://h", "x://h/a"), ("a", "x:", "x:a"), ("a", "x:b/c", "x:b/a"),
            ("../a", "x:b", "x:a"), ("//g", "x://h/b?q", "x://g"), ("//g/../a", "x:", "x://g/a"),
            ("x:a", "x://h/b", "x:a"), ("y:", "x://h/b", "y:"), ("", "", ""), ("a", "", "a"),
            ("./a", "", "a"), ("a", "b/./c", "b/a"), ("", "x://h/b/../c", "x://h/b/../c"),
            ("g", "x://h/b/\u{301}c", "x://h/b/g"),
        ])
    func `is resolved against a base`(text: String, base: String, result: String) {
        #expect(resolved(text, base) == result)
    }

    @Test(arguments: [":", ":a", "1:", "1a:b", "+:", "-a:b", "a_b:c", "ü:", "a b:c", "%61:b"])
    func `does not begin with a colon after what is no scheme`(text: String) {
        #expect(URIReference(text) == nil)
    }
}
