import Foundation
import Testing

@testable import HTTPCore

/// What bytes become between the quotation marks.
private func rendered(_ bytes: [UInt8]) -> String {
    // By scalars: a combining one would merge with the quotation mark before it.
    let quoted = bytes.withUnsafeBytes(JSONText.quoted).unicodeScalars
    return String(String.UnicodeScalarView(quoted.dropFirst().dropLast()))
}

@Suite("JSON: writing")
struct JSONTextTests {
    static let table: [([UInt8], String)] = [
        ([], ""),
        (Array("plain /path?q=1&r=[2]".utf8), "plain /path?q=1&r=[2]"),
        (Array("a\"b\\c".utf8), #"a\"b\\c"#),
        ([0x00, 0x1f, 0x7f], #"\u0000\u001f\u007f"#),
        ([0x0a, 0x0d, 0x09, 0x08], #"\n\r\t\u0008"#),
        (Array("héllo €😀".utf8), "héllo €😀"),
        ([0xc2, 0x80], #"\u0080"#), ([0xc2, 0x9f], #"\u009f"#), ([0xc2, 0xa0], "\u{a0}"),
        ([0x80], #"\ufffd"#), ([0xbf, 0x41], #"\ufffdA"#),
        ([0xc0, 0xaf], #"\ufffd\ufffd"#), ([0xc1, 0x81], #"\ufffd\ufffd"#),
        ([0xc3], #"\ufffd"#), ([0xc3, 0x28], #"\ufffd("#),
        ([0xe2, 0x82], #"\ufffd"#), ([0xe2, 0x82, 0x41], #"\ufffdA"#),
        ([0xe0, 0x80, 0x80], #"\ufffd\ufffd\ufffd"#),
        ([0xed, 0xa0, 0x80], #"\ufffd\ufffd\ufffd"#), ([0xed, 0x9f, 0xbf], "\u{d7ff}"),
        ([0xf0, 0x9f, 0x98], #"\ufffd"#), ([0xf0, 0x80, 0x80, 0x80], #"\ufffd\ufffd\ufffd\ufffd"#),
        ([0xf4, 0x8f, 0xbf, 0xbf], "\u{10ffff}"),
        ([0xf4, 0x90, 0x80, 0x80], #"\ufffd\ufffd\ufffd\ufffd"#),
        ([0xf5, 0xff, 0xfe], #"\ufffd\ufffd\ufffd"#), ([0xc2], #"\ufffd"#),
        ([0xc2, 0x22], #"\ufffd\""#),
        (Array("a\u{2027}b\u{2028}c\u{2029}d\u{202A}".utf8), "a\u{2027}b\\u2028c\\u2029d\u{202A}"),
        ([0xe2, 0x80], #"\ufffd"#), ([0xe2, 0x80, 0x28], #"\ufffd("#),
    ]

    @Test(arguments: table)
    func `bytes become the inside of a JSON string`(bytes: [UInt8], expected: String) {
        #expect(rendered(bytes) == expected)
    }

    @Test
    func `any bytes make a string that a JSON reader accepts, repaired as in Unicode`() throws {
        var random: UInt64 = 0x2545_F491_4F6C_DD1D
        let interesting: [UInt8] = [
            0x22, 0x5c, 0x0a, 0x00, 0x7f, 0x80, 0xbf, 0xc2, 0xc3, 0xe0, 0xe2, 0xed, 0xef, 0xf0,
            0xf4, 0xf5, 0xff, 0xa0, 0x9f, 0x90, 0x8f, 0x41,
        ]
        for _ in 0..<3000 {
            var bytes: [UInt8] = []
            random ^= random << 13
            random ^= random >> 7
            random ^= random << 17
            for step in 0..<(random % 12) {
                let pick = random >> (step * 5)
                bytes.append(interesting[Int(pick % UInt64(interesting.count))])
            }
            let text = "[\"" + rendered(bytes) + "\"]"
            let parsed = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String]
            #expect(parsed == [String(decoding: bytes, as: UTF8.self)], "\(bytes)")
        }
    }

    @Test func `a byte that needs an escape is found wherever it stands among plain ones`() throws {
        for length in 1...20 {
            for place in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var bytes = [UInt8](repeating: UInt8(ascii: "z"), count: length)
                    bytes[place] = byte
                    let alone = rendered([byte])
                    let expected =
                        String(repeating: "z", count: place) + alone
                        + String(repeating: "z", count: length - place - 1)
                    #expect(rendered(bytes) == expected)
                }
            }
        }
    }

    @Test func `no byte leaves a raw control character or ends the string`() {
        for byte in UInt8.min...UInt8.max {
            let text = rendered([byte])
            #expect(text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
            if byte == UInt8(ascii: "\"") { #expect(text == "\\\"") }
        }
    }

    @Test(
        arguments: [
            ("", #""""#), ("plain", #""plain""#), ("a\"b", #""a\"b""#), ("a\\b", #""a\\b""#),
            ("a/b", #""a/b""#), ("\n\r\t", #""\n\r\t""#), ("\u{0}", #""\u0000""#),
            ("\u{8}\u{B}\u{1F}", #""\u0008\u000b\u001f""#), ("\u{7F}", #""\u007f""#),
            ("é𝄞", #""é𝄞""#), ("e\u{301}", "\"e\u{301}\""), ("\r\n", #""\r\n""#),
        ])
    func `a text in quotation marks is read again as it was`(
        text: String, expected: String
    ) throws {
        let json = JSONText.quoted(text)
        #expect(json.utf8.elementsEqual(expected.utf8))
        let decoded = try JSONDecoder().decode([String].self, from: Data("[\(json)]".utf8))
        #expect(decoded[0].utf8.elementsEqual(text.utf8))
        guard case .string(let own) = try JSONReader.read(Array(json.utf8)[...]) else {
            Issue.record("\(json) is no string")
            return
        }
        #expect(own.utf8.elementsEqual(text.utf8))
    }

    @Test func `an object has its members in their order, names and values escaped`() {
        var inner = JSONObject()
        inner.add("n", -1)
        var object = JSONObject()
        object.add("a\"", "b\n")
        object.add("none", String?.none)
        object.add("yes", true)
        object.add("list", ["x", "\u{2028}"])
        object.add("inner", inner)
        object.add("more", [inner, JSONObject()])
        object.add(raw: "raw", "1.5")
        #expect(
            object.text
                == #"{"a\"":"b\n","none":null,"yes":true,"list":["x","\u2028"],"#
                + #""inner":{"n":-1},"more":[{"n":-1},{}],"raw":1.5}"#)
    }
}
