import Testing

@testable import Gateway

/// What the reader makes of a text, and its exact words where it makes nothing of it.
@Suite("The nodes of a YAML text")
struct YAMLNodeTests {
    /// A node on one line. Each value and each key has its line before it: `1:{1:"a"=1:b}`. Texts
    /// that are not plain are in quotes, and keys always.
    private static func shown(_ node: ConfigNode) -> String {
        let content =
            switch node.content {
            case .null: "~"
            case .scalar(let text, let isPlain): isPlain ? text : text.debugDescription
            case .sequence(let values): "[\(values.map(shown).joined(separator: " "))]"
            case .mapping(let entries): "{\(entries.map(shown).joined(separator: " "))}"
            }
        return "\(node.origin.line ?? -1):\(content)"
    }

    private static func shown(_ entry: ConfigNode.Entry) -> String {
        "\(entry.keyOrigin.line ?? -1):\(entry.key.debugDescription)=\(shown(entry.value))"
    }

    private static func read(_ bytes: [UInt8]) -> String {
        do throws(ConfigurationError) {
            return shown(try YAMLDocument.parse(bytes, name: "f"))
        } catch {
            return error.description
        }
    }

    @Test(arguments: [
        // Nothing, and the plain texts that mean it.
        ("", "1:~"), ("# a comment", "1:~"), ("---", "2:~"), ("---\n...\n", "2:~"), ("~", "1:~"),
        ("\n\nnull", "3:~"),
        ("[~, null, Null, NULL, nULL]", "1:[1:~ 1:~ 1:~ 1:~ 1:nULL]"),
        ("a:\nb: ''\nc: \"~\"\n", #"1:{1:"a"=1:~ 2:"b"=2:"" 3:"c"=3:"~"}"#),
        // No other plain text is resolved: the checks of a key read it.
        (
            "[true, yes, 0x1F, 0o17, 010, 1_000, .inf, -.NaN, 1e3, 2001-12-14, 12:30:45, =]",
            "1:[1:true 1:yes 1:0x1F 1:0o17 1:010 1:1_000 1:.inf 1:-.NaN 1:1e3 1:2001-12-14 "
                + "1:12:30:45 1:=]"
        ),
        // The styles of a text.
        ("'it''s'", #"1:"it\'s""#), (#""a\tb\x41\u00e9\U0001F600""#, #"1:"a\tbAé😀""#),
        (#""\0""#, #"1:"\0""#), ("|\n  a\n   b\n", #"1:"a\n b\n""#),
        (">-\n  a\n  b\n", #"1:"a b""#),
        ("a b\n c", "1:a b c"), ("a: 'x\n\n  y'", #"1:{1:"a"=1:"x\ny"}"#),
        // Collections, each at the line where it begins.
        (
            "- a\n-\n  - b\n- c: d",
            #"1:[1:a 3:[3:b] 4:{4:"c"=4:d}]"#
        ),
        ("a:\n- b\n-\nc: {d: e, f}\n", #"1:{1:"a"=2:[2:b 3:~] 4:"c"=4:{4:"d"=4:e 4:"f"=4:~}}"#),
        ("[a: b, ? c : d]", #"1:[1:{1:"a"=1:b} 1:{1:"c"=1:d}]"#),
        ("? a\n: b", #"1:{1:"a"=2:b}"#), ("{}", "1:{}"), ("[]", "1:[]"),
        ("a: 1\n\"a\": 2\n", #"1:{1:"a"=1:1 2:"a"=2:2}"#),
        // Anchors: an alias repeats the value with its lines, the latest of a name.
        ("- &x a\n- *x\n- &x b\n- *x", "1:[1:a 1:a 3:b 3:b]"),
        ("a: &x\n  b: 1\nc: *x", #"1:{1:"a"=1:{2:"b"=2:1} 3:"c"=1:{2:"b"=2:1}}"#),
        ("&k a: 1\nb: *k\n*k : 2", #"1:{1:"a"=1:1 2:"b"=1:a 3:"a"=3:2}"#),
        ("- &n ~\n- {*n : 1}", #"1:[1:~ 2:{2:"~"=2:1}]"#),
        ("- &x-_1 a\n- *x-_1", "1:[1:a 1:a]"), ("&r [&r a, *r]", "1:[1:a 1:a]"),
        // `<<` merges nothing.
        ("- &x {a: 1}\n- <<: *x", #"1:[1:{1:"a"=1:1} 2:{2:"<<"=1:{1:"a"=1:1}}]"#),
        // Tags are ignored.
        ("!!int a", "1:a"), ("!!str ~", "1:~"), ("! ~", "1:~"),
        ("!x [!<tag:y> 'a']", #"1:[1:"a"]"#),
        ("%TAG !e! tag:e,1:\n---\n!e!a b", "3:b"), ("%YAML 1.2\n---\na", "3:a"),
        // Line ends of YAML 1.1, and byte order marks before the text and before plain texts.
        ("- a\r\n- b\r- c\u{85}- d\u{2028}- e\u{2029}- f", "1:[1:a 2:b 3:c 4:d 5:e 6:f]"),
        ("\u{FEFF}a: b", #"1:{1:"a"=1:b}"#), ("\u{FEFF}\u{FEFF}a: b", #"1:{1:"a"=1:b}"#),
        (
            "a: \u{FEFF}b\nc: '\u{FEFF}'",
            "1:{1:\"a\"=1:b 2:\"c\"=2:\"\u{FEFF}\"}"
        ),
    ])
    func `have their lines and texts`(text: String, expected: String) {
        #expect(Self.read(Array(text.utf8)) == expected)
    }

    @Test(arguments: [
        // Columns count Unicode scalars, from 1.
        (
            "a: 1\nb: @",
            "f:2: not valid YAML at column 4: a value begins with a character that "
                + "has a meaning in YAML; expected the value in quotes"
        ),
        (
            "é: @",
            "f:1: not valid YAML at column 4: a value begins with a character that has a "
                + "meaning in YAML; expected the value in quotes"
        ),
        (
            "e\u{301}\u{1F1E9}\u{1F1EA}: @",
            "f:1: not valid YAML at column 7: a value begins with a "
                + "character that has a meaning in YAML; expected the value in quotes"
        ),
        // Problems that libyaml's own words describe.
        (
            "a: &",
            "f:1: not valid YAML at column 5: while scanning an anchor, did not find expected "
                + "alphabetic or numeric character"
        ),
        (
            "a: !e!x y",
            "f:1: not valid YAML at column 4: while parsing a node, found undefined tag "
                + "handle"
        ),
        (
            "a: [,]",
            "f:1: not valid YAML at column 5: while parsing a flow node, did not find "
                + "expected node content"
        ),
        (
            "a: }",
            "f:1: not valid YAML at column 4: while parsing a block node, did not find "
                + "expected node content"
        ),
        (
            #"a: "\ud800""#,
            "f:1: not valid YAML at column 7: while parsing a quoted scalar, found "
                + "invalid Unicode character escape code"
        ),
        (
            #"a: "\q""#,
            "f:1: not valid YAML at column 5: an unknown escape after a backslash; "
                + "expected single quotes"
        ),
        ("%YAML 2.0\n---\na", "f:1: not valid YAML at column 1: found incompatible YAML document"),
        (
            "a: |\n\tb",
            "f:2: not valid YAML at column 1: a tab in the indentation; expected spaces: "
                + "YAML is not indented by tabs"
        ),
        // One document only.
        (
            "a: 1\n---\nb: 2",
            "f:2: not valid YAML at column 1: expected a single document in the "
                + "stream, but found another document"
        ),
        (
            "a\n---\n",
            "f:2: not valid YAML at column 1: expected a single document in the stream, "
                + "but found another document"
        ),
        // Aliases without anchors, also one that would be a part of itself.
        ("a: *b", "f:1: not valid YAML at column 4: an alias (*name) has no anchor (&name)"),
        (
            "- &x a\n- &y [*y]",
            "f:2: not valid YAML at column 7: an alias (*name) has no anchor "
                + "(&name)"
        ),
        // Keys that are no text.
        ("[a]: 1", "f:1: a list or a mapping as a key; expected a name"),
        ("a: 1\n? {b: c}\n: 2", "f:2: a list or a mapping as a key; expected a name"),
        ("- &x [a]\n- *x : 1", "f:2: a list or a mapping as a key; expected a name"),
        // Characters that YAML does not allow.
        ("a: \u{1}", "f:1: not valid YAML at column 4: control characters are not allowed"),
        (
            "a: 1\r\nb: e\u{301}\u{7F}",
            "f:2: not valid YAML at column 5: control characters are not "
                + "allowed"
        ),
        ("\u{0}", "f:1: not valid YAML at column 1: control characters are not allowed"),
        (
            "a\u{2028}\u{600}\u{FFFE}",
            "f:2: not valid YAML at column 2: control characters are not "
                + "allowed"
        ),
    ])
    func `are an error in exact words`(text: String, expected: String) {
        #expect(Self.read(Array(text.utf8)) == expected)
    }

    @Test(
        arguments: [
            [0x61, 0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xE2, 0x82],
            // UTF-16 with its byte order mark.
            [0xFE, 0xFF, 0x00, 0x61], [0xFF, 0xFE, 0x61, 0x00],
        ] as [[UInt8]])
    func `are refused in text that is not UTF-8`(bytes: [UInt8]) {
        #expect(Self.read(bytes) == "f: not UTF-8 text; expected YAML in UTF-8")
    }

    @Test func `are refused in UTF-16 without a byte order mark`() {
        #expect(
            Self.read([0x61, 0x00, 0x3A, 0x00])
                == "f:1: not valid YAML at column 2: control characters are not allowed")
    }

    @Test func `count those that aliases repeat`() {
        let hundred = "&h [\([String](repeating: "x", count: 99).joined(separator: ", "))]"
        func text(_ aliases: Int) -> [UInt8] {
            Array("a: \(hundred)\nb:\n\(String(repeating: "- *h\n", count: aliases))".utf8)
        }
        // The mapping, its two lists and the texts of the first.
        #expect(Self.read(text(998)).hasPrefix("1:{"))
        #expect(Self.read(text(999)) == "f:1: more than 100000 values")
    }

    @Test func `nest within the limit, also by an alias`() {
        func text(_ depth: Int) -> [UInt8] {
            let nested = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            return Array("- &x [[\n  x]]\n- \(nested.replacing("[]", with: "[*x]"))".utf8)
        }
        #expect(Self.read(text(29)).hasPrefix("1:[1:[1:[2:x]] 3:[3:["))
        #expect(Self.read(text(30)) == "f:2: nested more than 32 deep")
    }

    /// More than libyaml should be asked to nest: the reader stops at its own limit.
    @Test(arguments: ["[", "{a: ", "- ", "[&a "])
    func `nest no deeper than the limit in a file of any length`(opening: String) {
        let text = String(repeating: opening, count: 1_000_000 / opening.utf8.count)
        let result = Self.read(Array(text.utf8))
        #expect(result == "f:1: nested more than 32 deep")
    }
}
