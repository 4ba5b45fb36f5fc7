import Testing

/// Texts and their results, like the JSON Parsing Test Suite: those that must be accepted, those
/// that must not, and those for which RFC 8259 leaves it to the parser.
enum JSONTexts {
    /// Valid by RFC 8259.
    static let valid: [String] = [
        "[]", "{}", "[[]]", "[{}]", "{\"a\":{}}", "{\"a\":[]}", "[[],[]]", "[{},{}]",
        "null", "true", "false", "0", "-0", "\"\"", "\"a\"", " null ", "\tnull\r\n", "[null]",
        "[true]", "[false]", "[1]", "[\"a\"]", "[1,2]", "[1 , 2]", "[ 1 ]", "[1\n]", "[1\r\n,2]",
        "[ ]", "[\t]", "{ }", "{\n}", " [] ", "[] \n", "[null, 1, \"1\", {}]", "[[[[[]]]]]",
        // Numbers.
        "1", "-1", "10", "123", "-123", "1.5", "-1.5", "0.5", "-0.5", "0.0", "-0.0", "1e1", "1E1",
        "1e+1", "1e-1", "1E+1", "1E-1", "0e1", "0e+1", "0e-1", "0E1", "1.5e10", "1.5E-10",
        "123456789", "1234567890123456789", "-9223372036854775808", "18446744073709551615",
        "[123.456e78]", "[20e1]", "[123e65]", "[0e1]", "[1e-2]", "[-123]", "[123.456789]",
        "-0.000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        // Strings.
        #""\"""#, #""\\""#, #""\/""#, #""\b\f\n\r\t""#, #""\u0041""#, #""\u00e9""#, #""\u00E9""#,
        #""\u0000""#, #""\u001f""#, #""\u2028\u2029""#, #""\ud83d\ude00""#, #""\uD834\uDD1E""#,
        #""\uDBFF\uDFFF""#, #""\uD800\uDC00""#, #""\uFFFF""#, #""\uFFFE""#, #""\uFDD0""#,
        #""\u200B""#, #""\uD7FF""#, #""\uE000""#, #""\u0060\u012a\u12AB""#, #""\\u0000""#,
        #""\\\"""#, #""\"\"""#, #""\\n""#, #""a\u0022b""#, #""\u005c""#,
        "\"é\"", "\"日本語\"", "\"😀\"", "\"\u{10FFFF}\"", "\"\u{FFFF}\"", "\"\u{7F}\"",
        "\"\u{80}\"", "\"\u{2028}\"", "\"\u{FEFF}\"", "\"/\"", "\"'\"", "\" \"", "\"//\"",
        "\"/* no comment */\"", "\"asd \"", "[\"π\"]", "[\"aa\u{0301}\"]", "\"e\u{0301}\"",
        // Objects.
        "{\"a\":1}", "{\"a\":1,\"b\":2}", "{ \"a\" : 1 , \"b\" : 2 }", "{\"\":0}", "{\"a\":null}",
        #"{"\u0000":1}"#, #"{"a":"b","b":"a"}"#, #"{"a":{"a":{"a":1}}}"#, #"{"a":[],"b":[]}"#,
        #"{"a":"a","A":"a"}"#, "{\"é\":1,\"e\u{0301}\":2}", #"{"a":1,"\u0062":2}"#,
        "{\"a\":[{\"a\":1},{\"a\":2}]}", "{\n\"a\": 1\n}", #"{"min":-1.0e+28,"max":1.0e+28}"#,
        #"{"long name that is beyond eight and beyond sixteen bytes":1}"#,
    ]

    /// RFC 8259 leaves these to the parser, and they are accepted: numbers beyond double precision,
    /// with all digits, and a byte order mark.
    static let taken: [String] = [
        "1e400", "-1e400", "1e-400", "0.4e00669999999999999999999999999999999999999999999999999",
        "123123123123123123123123123123", "-123123123123123123123123123123", "1e1000000000000",
        "-1e+9999", "1.5e+9999", "123123e100000", "100000000000000000000", "1E0000000000000000001",
        "\u{FEFF}null", "\u{FEFF} {\"a\":1}", "[1e9999999999999999999999999999999999999999]",
    ]

    /// The label of the reason, and the byte at which the error is.
    struct Refused: CustomTestStringConvertible {
        var text: String
        var offset: Int
        var reason: String
        var testDescription: String { text }

        init(_ text: String, _ offset: Int, _ reason: String = "malformed") {
            self.text = text
            self.offset = offset
            self.reason = reason
        }
    }

    /// Invalid by RFC 8259.
    static let invalid: [Refused] =
        [
            // Nothing, and more than one.
            Refused("", 0), Refused(" ", 1), Refused("\n", 1), Refused("1 2", 2),
            Refused("[][]", 2), Refused("{}{}", 2), Refused("[1],", 3), Refused("null null", 5),
            Refused("1]", 1), Refused("\"a\" x", 4), Refused("{}}", 2), Refused("[]]", 2),
            Refused("{\"a\":1}#", 7), Refused("{} // comment", 3), Refused("\u{FEFF}", 3),
            Refused("\u{FEFF}\u{FEFF}1", 3), Refused("1\u{0}", 1), Refused("[1]\u{0}x", 3),
            Refused("\u{0}", 0), Refused("[\u{0}]", 1), Refused("{}\u{0}", 2),
            // Words.
            Refused("nul", 3), Refused("nulL", 3), Refused("NULL", 0), Refused("True", 0),
            Refused("tru", 3), Refused("truE", 3), Refused("fals", 4), Refused("falsy", 4),
            Refused("undefined", 0), Refused("NaN", 0), Refused("Infinity", 0),
            Refused("-Infinity", 1), Refused("-NaN", 1), Refused("nan", 1), Refused("a", 0),
            Refused("*", 0), Refused("'a'", 0), Refused("é", 0), Refused("<null>", 0),
            Refused("nullx", 4), Refused("truefalse", 4), Refused("\u{2060}", 0),
            Refused("\u{A0}1", 0), Refused("\u{0C}1", 0), Refused("\u{0B}1", 0),
            // Numbers.
            Refused("+1", 0), Refused("-", 1), Refused("--1", 1), Refused("01", 1),
            Refused("-01", 2), Refused("00", 1), Refused("1.", 2), Refused(".5", 0),
            Refused("-.5", 1), Refused("1.e1", 2), Refused("1e", 2), Refused("1e+", 3),
            Refused("1eE2", 2), Refused("1e1.5", 3), Refused("1.5.5", 3), Refused("0x1F", 1),
            Refused("1_000", 1), Refused("1,000", 1), Refused("1 000", 2), Refused("- 1", 1),
            Refused("1+2", 1), Refused("0e", 2), Refused("0.e1", 2), Refused("[-2.]", 4),
            Refused("[1.a]", 3), Refused("[1ea]", 3), Refused("[0.3e+]", 6), Refused("2.e3", 2),
            Refused("9.e+", 2), Refused("1e-", 3), Refused("[- 1]", 2), Refused("１", 0),
            Refused("-1x", 2), Refused("-0x", 2), Refused("[1e+ 1]", 4), Refused("-a", 1),
        ] + invalidStrings + invalidContainers

    private static let invalidStrings: [Refused] = [
        Refused("\"", 1), Refused("\"a", 2), Refused("a\"", 0), Refused("\"\\\"", 3),
        Refused(#""\"#, 1), Refused(#""\a""#, 1), Refused(#""\x00""#, 1), Refused(#""\'""#, 1),
        Refused(#""\u""#, 1), Refused(#""\u1""#, 1), Refused(#""\u12""#, 1),
        Refused(#""\u123""#, 1), Refused(#""\u123g""#, 1), Refused(#""\u 123""#, 1),
        Refused(#""\U0041""#, 1), Refused(#""\u+041""#, 1), Refused(#""ab\q""#, 3),
        Refused(#""\é""#, 1), Refused("\"\\\u{0}\"", 1), Refused("\"\\\n\"", 1),
        Refused("\"\u{0}\"", 1), Refused("\"\n\"", 1), Refused("\"\t\"", 1),
        Refused("\"\u{1F}\"", 1), Refused("\"\u{1A}\"", 1), Refused("\"\u{19}\"", 1),
        Refused("\"abcdefghijklmnopqrstuvwxyz\u{1B}\"", 27), Refused("\"a\u{1E}b\"", 2),
        // Halves of surrogate pairs.
        Refused(#""\ud800""#, 1), Refused(#""\udbff""#, 1), Refused(#""\udc00""#, 1),
        Refused(#""\udfff""#, 1), Refused(#""\ud800a""#, 1), Refused(#""\ud800\n""#, 1),
        Refused(#""\ud800\u0041""#, 1), Refused(#""\ud800\ud800""#, 1),
        Refused(#""\udc00\ud800""#, 7), Refused(#""\uDd1e\uD834""#, 7),
        Refused(#""ab\udc00""#, 3), Refused(#""\ud83d\ude00\ude00""#, 13),
        Refused(#""\\\udc00""#, 3), Refused(#""\u00e9\n\udfff""#, 9),
        Refused(#""\ud7ff\udc00""#, 7), Refused(#""퟿\udc00""#, 4),
        Refused(#"{"\udc00":1}"#, 2), Refused(#""\ud800\u""#, 1), Refused(#""\uD800\uD800\x""#, 1),
        Refused("\"\\ud800", 1), Refused("\"\\u00", 1),
    ]

    private static let invalidContainers: [Refused] = [
        Refused("[", 1), Refused("]", 0), Refused("{", 1), Refused("}", 0), Refused("[}", 1),
        Refused("{]", 1), Refused("[1", 2), Refused("[1,", 3), Refused("[1,]", 3),
        Refused("[,1]", 1), Refused("[,]", 1), Refused("[1,,2]", 3), Refused("[1 2]", 3),
        Refused("[1}", 2), Refused("[1:2]", 2), Refused("[\"a\" \"b\"]", 5), Refused("[[]", 3),
        Refused("[\"a\",\n4\n,1,", 11), Refused("[3[4]]", 2), Refused("[:1]", 1),
        Refused("[1,\n1\n,1", 8), Refused("[{}", 3), Refused("[ x ]", 2), Refused("[*]", 1),
        Refused("{\"a\"", 4), Refused("{\"a\":", 5), Refused("{\"a\":1", 6),
        Refused("{\"a\":1,", 7),
        Refused("{\"a\":1,}", 7), Refused("{,\"a\":1}", 1), Refused("{\"a\" 1}", 5),
        Refused("{\"a\",1}", 4), Refused("{\"a\"}", 4), Refused("{1:1}", 1), Refused("{a:1}", 1),
        Refused("{'a':1}", 1), Refused("{null:1}", 1), Refused("{\"a\":1 \"b\":2}", 7),
        Refused("{\"a\":1,,\"b\":2}", 7), Refused("{\"a\":1]", 6), Refused("{\"a\"::1}", 5),
        Refused("{\"a\":1:2}", 6), Refused("{[]:1}", 1), Refused("{\"a\":a}", 5),
        Refused("{\"a\":1;\"b\":2}", 6), Refused("{/**/}", 1), Refused("{\"a\":/*b*/1}", 5),
        Refused("{\"a\":01}", 6), Refused("{\"a\":'b'}", 5), Refused("{\"a\", \"b\"}", 4),
        // Duplicate names.
        Refused("{\"a\":1,\"a\":2}", 7, "duplicate-key"),
        Refused("{\"a\":1,\"a\":1}", 7, "duplicate-key"),
        Refused("{\"\":1,\"\":2}", 6, "duplicate-key"),
        Refused(#"{"a":1,"\u0061":2}"#, 7, "duplicate-key"),
        Refused(#"{"\u0061":1,"a":2}"#, 12, "duplicate-key"),
        Refused(#"{"\n":1,"\u000a":2}"#, 8, "duplicate-key"),
        Refused("{\"b\":{\"a\":1,\"a\":2}}", 12, "duplicate-key"),
        Refused("[{\"a\":1},{\"a\":1, \"b\":2, \"a\":3}]", 24, "duplicate-key"),
        Refused("{\"é\":1,\"é\":2}", 8, "duplicate-key"),
        Refused("{\"a\":{\"a\":1},\"a\":2}", 13, "duplicate-key"),
    ]

    /// Not UTF-8, within a string: the byte of the string, counted from 0, at which it becomes
    /// invalid.
    static let brokenUTF8: [(bytes: [UInt8], index: Int)] = [
        ([0x80], 0), ([0xBF], 0), ([0xFE], 0), ([0xFF], 0), ([0xC0, 0x80], 0), ([0xC1, 0xBF], 0),
        ([0xC2], 0), ([0xC3, 0x28], 0), ([0xDF, 0xC0], 0), ([0xE0, 0x80, 0x80], 0),
        ([0xE0, 0x9F, 0xBF], 0), ([0xE1, 0x80], 0), ([0xE2, 0x82, 0x28], 0),
        ([0xE2, 0x28, 0xA1], 0),
        ([0xED, 0xA0, 0x80], 0), ([0xED, 0xBF, 0xBF], 0),
        ([0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], 0),
        ([0xF0, 0x80, 0x80, 0x80], 0), ([0xF0, 0x8F, 0xBF, 0xBF], 0), ([0xF0, 0x9F, 0x98], 0),
        ([0xF0, 0x28, 0x8C, 0xBC], 0), ([0xF0, 0x90, 0x28, 0xBC], 0),
        ([0xF0, 0x90, 0x80, 0x28], 0),
        ([0xF4, 0x90, 0x80, 0x80], 0), ([0xF5, 0x80, 0x80, 0x80], 0),
        ([0xF7, 0xBF, 0xBF, 0xBF], 0),
        ([0xF8, 0x88, 0x80, 0x80, 0x80], 0), ([0xFC, 0x84, 0x80, 0x80, 0x80, 0x80], 0),
        ([0x61, 0xFF], 1), ([0xC3, 0xA9, 0xE9], 2), ([0x61, 0xC3, 0xA9, 0x62, 0x80], 4),
        (Array("sixteen bytes and more: ".utf8) + [0xE9], 24),
    ]

    /// Anything outside strings that is not UTF-8 is not a value; nor are UTF-16 and UTF-32.
    static let otherEncodings: [[UInt8]] = [
        [0xFF], [0xE9], [0x5B, 0xFF, 0x5D], [0x31, 0xE9], [0x7B, 0xE9, 0x7D], [0xEF, 0xBB],
        [0xEF, 0xBB, 0x31], [0xFE, 0xFF, 0x00, 0x31], [0xFF, 0xFE, 0x31, 0x00],
        [0x00, 0x5B, 0x00, 0x5D], [0x5B, 0x00, 0x5D, 0x00], [0x00, 0x00, 0x00, 0x31],
    ]
}
