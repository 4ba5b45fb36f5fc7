import HTTPCore
import Testing

/// The single grammar of addresses in text, used for heads, patterns, certificates and names.
@Suite("Addresses in text")
struct LiteralTests {
    @Test(
        arguments: [
            ("1.2.3.4", [1, 2, 3, 4]), ("0.0.0.0", [0, 0, 0, 0]),
            ("255.255.255.255", [255, 255, 255, 255]), ("::ffff:1.2.3.4", [1, 2, 3, 4]),
            ("[::FFFF:102:304]", [1, 2, 3, 4]),
            ("::", [UInt8](repeating: 0, count: 16)),
            ("::1", [UInt8](repeating: 0, count: 15) + [1]),
            ("[::1]", [UInt8](repeating: 0, count: 15) + [1]),
            ("1::", [0, 1] + [UInt8](repeating: 0, count: 14)),
            ("1:2:3:4:5:6:7:8", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]),
            ("1:2:3:4:5:6:7::", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 0]),
            ("::2:3:4:5:6:7:8", [0, 0, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8]),
            ("64:ff9b::192.0.2.33", [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 33]),
            ("1:2:3:4:5:6:1.2.3.4", [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 1, 2, 3, 4]),
        ] as [(String, [UInt8])])
    func `a host that is an address has its bytes, whichever form it is written in`(
        _ text: String, _ bytes: [UInt8]
    ) {
        #expect(IPAddress(literal: text.utf8.span)?.unmapped.networkBytes == bytes)
    }

    @Test(
        arguments: [
            "", "1", "1.2.3", "1.2.3.4.", "1.2.3.4.5", "1..3.4", "256.1.1.1", "01.2.3.4", "1.2.3.x",
            "0x1.2.3.4", "1.2.3.4444", "[1.2.3.4]", "[1.2.3.4]x", "[]", "[", ":", ":::", "1:2",
            "1::2::3", "::g", "12345::", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::", "::1%lo",
            "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3", "1:", "1:2:3:4:5:6:7:", ":1", "example.com",
            "[::1", "::1]", "[[::1]]", "[::1]:80", String(repeating: "1", count: 48),
        ])
    func `what is not exactly an address is a name`(_ text: String) {
        #expect(IPAddress(literal: text.utf8.span) == nil)
    }

    /// Texts of every arrangement of a few parts, compared with a parser that follows the grammar's
    /// words (RFC 4291 §2.2) instead of the bytes.
    @Test func `every arrangement of groups is read by the grammar`() {
        let parts = ["", "0", "ff", "1.2.3.4", "12345"]
        var texts = parts
        var longest = parts
        for _ in 0..<5 {
            longest = longest.flatMap { text in parts.map { text + ":" + $0 } }
            texts += longest
        }
        // And the full width, where the number of groups matters.
        for groups in 5...9 {
            for gap in 0...groups {
                var words = [String](repeating: "1", count: groups)
                if gap < groups { words[gap] = "" }
                let text = words.joined(separator: ":")
                texts += [text, ":" + text, text + ":", text + ":1.2.3.4"]
            }
        }
        for text in texts where text.contains(":") {
            let isAddress = Self.isIPv6(text)
            #expect((IPAddress(text)?.family == .v6) == isAddress, "\(text)")
            #expect((IPAddress(literal: "[\(text)]".utf8.span) != nil) == isAddress, "[\(text)]")
        }
    }

    private static func isIPv6(_ text: String) -> Bool {
        func groups(_ side: Substring) -> [Substring]? {
            if side.isEmpty { return [] }
            let words = side.split(separator: ":", omittingEmptySubsequences: false)
            let isGroup = { (word: Substring) in
                (1...4).contains(word.count) && word.allSatisfy(\.isHexDigit)
            }
            guard words.dropLast().allSatisfy(isGroup), let last = words.last else { return nil }
            if last == "1.2.3.4" { return words + ["tail"] }
            return isGroup(last) ? words : nil
        }
        guard let gap = text.firstRange(of: "::") else { return groups(text[...])?.count == 8 }
        guard let head = groups(text[..<gap.lowerBound]),
            let tail = groups(text[gap.upperBound...]),
            !head.contains("tail")
        else { return false }
        return head.count + tail.count <= 7
    }
}
