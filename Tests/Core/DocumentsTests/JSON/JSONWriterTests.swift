import Testing

@testable import Documents

private func written(
    _ value: DocumentValue, limits: DocumentLimits = .standard
) throws(DocumentError) -> String {
    String(decoding: try JSONWriter.bytes(of: value, limits: limits), as: UTF8.self)
}

@Suite("JSON that is written")
struct JSONWriterTests {
    @Test(
        arguments: [
            (.null, "null"), (.boolean(true), "true"), (.boolean(false), "false"),
            (.number(-12), "-12"), (.string(""), "\"\""), (.array([]), "[]"),
            (.dictionary([:]), "{}"), (.array([.null]), "[null]"),
            (.array([.number(1), .array([.number(2)]), .dictionary([:])]), "[1,[2],{}]"),
            (.dictionary(["b": .number(1), "a": .array([])]), "{\"b\":1,\"a\":[]}"),
            (
                .dictionary(["a": .dictionary(["b": .null, "c": .null])]),
                "{\"a\":{\"b\":null,\"c\":null}}"
            ),
            (.string("é日😀/\u{7F}\u{2028}"), "\"é日😀/\u{7F}\u{2028}\""),
            (.string("\"\\\u{8}\t\n\u{C}\r"), #""\"\\\b\t\n\f\r""#),
            (.string("\0\u{1}\u{1F}\u{1B}"), #""\u0000\u0001\u001f\u001b""#),
            (.dictionary(["k\"\n": .null]), #"{"k\"\n":null}"#),
            // Data and dates, which JSON does not have.
            (.data([]), "\"\""), (.data([0x66]), "\"Zg==\""), (.data([0x66, 0x6F]), "\"Zm8=\""),
            (.data([0x66, 0x6F, 0x6F]), "\"Zm9v\""),
            (.data([0xFB, 0xFF, 0xBF, 0]), "\"+/+/AA==\""),
            (.date(0), "\"1970-01-01T00:00:00Z\""),
            (.date(1_795_388_753), "\"2026-11-22T23:05:53Z\""),
            (.date(1_795_388_753.25), "\"2026-11-22T23:05:53.25Z\""),
            (.date(0.000001), "\"1970-01-01T00:00:00.000001Z\""),
            (.date(0.0000001), "\"1970-01-01T00:00:00Z\""),
            (.date(0.9999999), "\"1970-01-01T00:00:01Z\""),
            (.date(-0.5), "\"1969-12-31T23:59:59.5Z\""),
            (.date(-62_167_219_200), "\"0000-01-01T00:00:00Z\""),
            (.date(253_402_300_799), "\"9999-12-31T23:59:59Z\""),
        ] as [(DocumentValue, String)])
    func `each kind of value has its form`(value: DocumentValue, text: String) throws {
        #expect(try written(value) == text)
    }

    @Test(arguments: [-62_167_219_201, 253_402_300_800, 1e300, .infinity, -.infinity, .nan])
    func `a date beyond the years of four digits cannot be written`(seconds: Double) throws {
        let error = DocumentError(
            .json, .unrepresentable("a date outside the years 0000 to 9999"), path: "a[1]")
        #expect(throws: error) {
            try written(.dictionary(["a": .array([.null, .date(seconds)])]))
        }
    }

    @Test func `each character that is escaped is found wherever it stands`() throws {
        for character in [
            "\"", "\\", "\n", "\0", "\u{1F}", "\u{20}", "!", "#", "[", "]", "\u{7F}", "é",
        ] {
            for before in 0..<20 {
                let text = String(repeating: "x", count: before) + character + "yyyyyyyyyy"
                let json = try written(.string(text))
                #expect(try JSONDocument.value(of: Array(json.utf8)) == .string(text))
                let isEscaped = ["\"", "\\", "\n", "\0", "\u{1F}"].contains(character)
                #expect((json.utf8.count > text.utf8.count + 2) == isEscaped)
            }
        }
    }

    @Test(
        arguments: [
            .string("abc"), .string("a\n\u{1}\""), .number(12345), .null, .array([]),
            .array([.number(1), .number(2)]), .dictionary(["a": .number(1), "b": .array([])]),
            .data([1, 2, 3, 4]), .date(0.5), .array([.array([.string("\u{1}\u{1}")])]),
        ] as [DocumentValue])
    func `the bytes of what is written are held exactly`(value: DocumentValue) throws {
        let count = try written(value).utf8.count
        #expect(try written(value, limits: DocumentLimits(output: count)).utf8.count == count)
        for less in 0..<count {
            let error = #expect(throws: DocumentError.self) {
                try written(value, limits: DocumentLimits(output: less))
            }
            #expect(error?.reason == .outputTooLarge(maximum: less))
        }
    }

    @Test func `the depth is held exactly`() throws {
        func nested(_ depth: Int) -> DocumentValue {
            (1..<depth).reduce(.array([])) { value, _ in .dictionary(["a": value]) }
        }
        let limits = DocumentLimits(depth: 3)
        #expect(try written(nested(3), limits: limits) == "{\"a\":{\"a\":[]}}")
        #expect(throws: DocumentError(.json, .tooDeep(maximum: 3), path: "a.a.a")) {
            try written(nested(4), limits: limits)
        }
    }

    @Test func `a value that is not whole is not finished`() throws {
        var writer = JSONWriter()
        #expect(throws: DocumentError(.json, .malformed("the value is incomplete"))) {
            try writer.finish()
        }
        try writer.beginArray()
        #expect(throws: DocumentError(.json, .malformed("the value is incomplete"), path: "[0]")) {
            try writer.finish()
        }
        try writer.endArray()
        #expect(try writer.finish() == Array("[]".utf8))
    }

    @Test func `a text goes through as it is but for its white space and escapes`() throws {
        let text = #"{ "a" : [1.50, -0, 1E400, "\u0041\/\u000a"], "b":{ } }"#
        var writer = JSONWriter()
        try Array(text.utf8).withBytes { bytes throws(DocumentError) in
            try JSONDocument.read(bytes, into: &writer)
        }
        let result = String(decoding: try writer.finish(), as: UTF8.self)
        #expect(result == #"{"a":[1.50,-0,1E400,"A/\n"],"b":{}}"#)
    }
}
