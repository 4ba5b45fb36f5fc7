import Testing

@testable import Documents

@Suite("Content-Type")
struct ContentTypeTests {
    @Test(
        arguments: [
            ("text/html", "text/html", nil), (" Text/HTML\t; charset=X", "text/html", "x"),
            ("a/b; q=1; Charset = \"UTF-8\" ;c=d", "a/b", "utf-8"), ("a/b;charset=", "a/b", nil),
            ("a/b;charset=\"\"", "a/b", nil), ("a/b;;charset=x;charset=y", "a/b", "x"),
            ("a/b;xcharset=x", "a/b", nil), (nil, nil, nil), ("", nil, nil), (" ;a=b", nil, nil),
            ("a/b;", "a/b", nil), ("a/b ; ; ;", "a/b", nil),
            ("a/b; c=\"x, y; \\\" z\"", "a/b", nil),
            ("multipart/form-data; boundary=a=b/c?d:e", "multipart/form-data", nil),
            // Malformed parameters that no parser reads as another type are ignored.
            ("application/json; utf-8", "application/json", nil), ("a/b; c", "a/b", nil),
            ("a/b; c ; charset=x; d e", "a/b", "x"), ("a/b; =c", "a/b", nil),
            ("a/b; @", "a/b", nil),
            ("a/b; charset=x; boundary=a b", "a/b", "x"), ("a/b; charset: x", "a/b", nil),
            ("a/b; profile=http://a/?b#c;charset=x", "a/b", "x"),
            ("multipart/related; type=text/html; start=<a@b>", "multipart/related", nil),
            ("a/b; type=application/xop+xml", "a/b", nil), ("a/b; c = d e", "a/b", nil),
            // What does not parse to its end is not a type, whatever it begins with.
            ("application/json;,text/html", "malformed", nil), ("a/b, c/d", "malformed", nil),
            ("a/b; c=d, e/f", "malformed", nil), ("a/b; charset=x y", "malformed", nil),
            ("a/b; charset = x/y", "malformed", nil), ("a/b; c, d/e", "malformed", nil),
            ("a/b; =,c/d", "malformed", nil), ("a/b; c=d e, f/g", "malformed", nil),
            ("a/b; c=d\"e, f/g\"", "malformed", nil), ("a/b; c\"d, e/f\"", "malformed", nil),
            ("a/b; c=d\\", "malformed", nil), ("a/b; c (d)", "malformed", nil),
            ("a/b; c=d (e)", "malformed", nil), ("a/b; c=\u{1}", "malformed", nil),
            ("a/b; c=é", "malformed", nil), (";,a/b", "malformed", nil), (",a/b", "malformed", nil),
            ("a/b c", "malformed", nil), ("a/b c=d", "malformed", nil),
            ("a/b; c=\"d", "malformed", nil), ("a/b; c=\"d\\\"", "malformed", nil),
            ("a/b; c=\"d\"e", "malformed", nil),
            ("a", "malformed", nil), ("a/", "malformed", nil), ("/b", "malformed", nil),
            ("a/b/c", "malformed", nil), ("a/b;boundary=a,b", "malformed", nil),
        ] as [(String?, String?, String?)])
    func `is a type and a charset`(value: String?, essence: String?, charset: String?) {
        let type = ContentType(value)
        #expect(type?.essence == essence)
        #expect(type?.charset == charset)
    }

    @Test(
        arguments: [
            ("application/json; utf-8", "application/json"),
            ("application/json charset=utf-8", "application/json"),
            ("Application/JSON\tcharset=utf-8", "application/json"),
            (" application/json; charset: utf-8", "application/json"),
            ("application/json; charset=\"utf-8", "application/json"),
            ("a/b; charset=utf 8", "a/b"), ("a/b;=", "a/b"),
            // Which of two types is meant is unknown.
            ("application/json, text/html", "malformed"),
            ("application/json;,text/html", "malformed"),
            ("application/json; utf-8, text/html", "malformed"),
            ("a; utf-8", "malformed"), ("a/b/c; x", "malformed"), ("a/; x", "malformed"),
        ])
    func `of a response is the type before malformed parameters`(
        value: String, essence: String
    ) {
        let type = ContentType(ofResponse: value)
        #expect(type?.essence == essence)
        #expect(type?.charset == nil)
    }

    /// They ignore what all parsers read alike, and nothing else.
    @Test(arguments: [
        ("application/json; utf-8", "application/json"), ("a/b;=", "a/b"),
        ("application/json charset=utf-8", "malformed"), ("a/b; charset=utf 8", "malformed"),
        ("application/json; charset=\"utf-8", "malformed"),
    ])
    func `of rules about what may pass is stricter than of a response`(
        value: String, essence: String
    ) {
        #expect(ContentType(value)?.essence == essence)
        #expect(ContentType(ofResponse: value)?.essence != "malformed")
    }

    @Test func `of a response that is well-formed has its charset`() {
        #expect(ContentType(ofResponse: "text/xml; charset=X")?.charset == "x")
        #expect(ContentType(ofResponse: "") == nil && ContentType(ofResponse: nil) == nil)
    }

    @Test(
        arguments: [
            ("application/json", ["application/json"]), ("a/b; c=\"d, e/f\"", ["a/b"]),
            ("A/b;,c/D ;e, f/g h", ["a/b", "c/d", "f/g"]), ("a/b c", ["a/b"]),
            (";, a/b", ["", "a/b"]), ("a/b; c=\"d, e/f", ["a/b", "e/f"]),
        ] as [(String, [String])])
    func `may be any of those that readers may take`(value: String, types: [String]) throws {
        let type = try #require(ContentType(value))
        var asked: [String] = []
        #expect(
            !type.mayBe {
                asked.append($0)
                return false
            })
        #expect(asked == types)
        for one in types { #expect(type.mayBe { $0 == one }) }
    }

    @Test func `of XML gives way to a byte order mark`() {
        let type = ContentType("text/xml; charset=iso-8859-1")
        #expect(type?.charset(ofXML: Array("<a/>".utf8)) == "iso-8859-1")
        for mark in [[0xEF, 0xBB, 0xBF], [0xFE, 0xFF], [0xFF, 0xFE]] as [[UInt8]] {
            #expect(type?.charset(ofXML: mark + [0x3C]) == nil)
        }
    }

    @Test func `that is written is one that is read`() {
        for format in DocumentFormat.allCases {
            #expect(format.mediaTypes.allSatisfy(format.isFormat))
            let others = DocumentFormat.allCases.filter { $0 != format }
            #expect(!others.contains { $0.isFormat(of: format.mediaTypes[0]) })
        }
    }
}
