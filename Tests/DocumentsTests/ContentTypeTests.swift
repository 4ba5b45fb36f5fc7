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
            // What does not parse to its end is no type, whatever it begins with.
            ("application/json;,text/html", "malformed", nil), ("a/b, c/d", "malformed", nil),
            ("a/b; c=d, e/f", "malformed", nil), ("a/b; charset=x y", "malformed", nil),
            ("a/b; c", "malformed", nil), ("a/b; =c", "malformed", nil),
            ("a/b c", "malformed", nil),
            ("a/b; c=\"d", "malformed", nil), ("a/b; c=\"d\\\"", "malformed", nil),
            ("a/b; c=\"d\"e", "malformed", nil), ("a/b; c=d/e", "malformed", nil),
            ("a", "malformed", nil), ("a/", "malformed", nil), ("/b", "malformed", nil),
            ("a/b/c", "malformed", nil), ("a/b;boundary=a,b", "malformed", nil),
        ] as [(String?, String?, String?)])
    func `is a type and a charset`(value: String?, essence: String?, charset: String?) {
        let type = ContentType(value)
        #expect(type?.essence == essence)
        #expect(type?.charset == charset)
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
