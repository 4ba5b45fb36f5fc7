import Testing

@testable import HTTPCore

@Suite("JSON: reading")
struct JSONReaderTests {
    private func read(_ text: String) throws -> JSONValue {
        try JSONReader.read(Array(text.utf8)[...])
    }

    @Test(
        arguments: [
            ("null", .null), (" true ", .boolean(true)), ("false\r", .boolean(false)),
            ("0", .number("0")), ("-12.5e+3", .number("-12.5e+3")), ("\"\"", .string("")),
            (#""a\n\"\\\/\b\f\r\tz""#, .string("a\n\"\\/\u{8}\u{c}\r\tz")),
            (#""\u00e9\uD83D\uDE00""#, .string("é😀")), ("\"é😀\"", .string("é😀")),
            ("[]", .array([])),
            ("[1, [ ] ,\"x\"]", .array([.number("1"), .array([]), .string("x")])),
            ("{}", .object([])),
            (
                "{\"a\":{\"b\":null},\"c\":[]}",
                .object([("a", .object([("b", .null)])), ("c", .array([]))])
            ),
        ] as [(String, JSONValue)])
    func `what RFC 8259 allows is read`(text: String, value: JSONValue) throws {
        #expect(try read(text) == value)
        // What is written for it is the same value again.
        #expect(try read(value.text) == value)
    }

    @Test(
        arguments: [
            "", " ", "nul", "nulll", "tru", "01", "-", "1.", "1e", "1e+", ".5", "+1", "'a'",
            "\"", "\"a", "\"\\", "\"\\x\"", "\"\\u12\"", "\"\\u+123\"", "\"\\u-000\"",
            "\"\\uD800\"",
            "\"\\uDC00\"", "\"\\uD800\\n\"", "\"\\uD800\\u0041\"", "\"a\nb\"", "[", "[1", "[1,",
            "[1,]", "[1 2]", "{", "{1:2}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{\"a\":1 \"b\":2}",
            "{\"a\":1,\"a\":2}", "1 2", "{} x", String(repeating: "[", count: 40),
        ])
    func `what it does not allow is refused`(text: String) {
        #expect(throws: JSONSyntaxError.self) { try read(text) }
    }

    @Test(
        arguments: [
            ("", "there is no value", 1), (",", "there is no value", 1),
            (" ]", "there is no value", 2), ("[", "the text ends where a value is expected", 2),
            ("{\"a\":", "the text ends where a value is expected", 6),
        ])
    func `a missing value is told apart from an end`(text: String, words: String, place: Int) {
        let error = #expect(throws: JSONSyntaxError.self) { try read(text) }
        #expect(error?.text == words && error?.position == place)
    }

    @Test func `bytes that are no UTF-8 are refused`() {
        #expect(throws: JSONSyntaxError.self) {
            try JSONReader.read([0x22, 0xFF, 0x22])
        }
    }
}
