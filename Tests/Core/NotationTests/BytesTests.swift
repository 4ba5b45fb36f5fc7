import HTTPCore
import Testing

@Suite("Bytes of text")
struct BytesTests {
    @Test func `every test of a byte agrees with its definition for every byte`() {
        let letters = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        for byte in UInt8.min...UInt8.max {
            let lower = byte >= 0x41 && byte <= 0x5A ? byte + 32 : byte
            #expect(ASCII.lowercased(byte) == lower, "\(byte)")
            #expect(ASCII.isDigit(byte) == (byte >= 0x30 && byte <= 0x39), "\(byte)")
            #expect(ASCII.isLetter(byte) == letters.contains(byte), "\(byte)")
            #expect(ASCII.isWhitespace(byte) == (byte == 9 || byte == 32), "\(byte)")
            let value = Array("0123456789abcdef".utf8).firstIndex(of: lower)
            #expect(ASCII.hexValue(byte) == value.map { UInt8($0) }, "\(byte)")
        }
        for value in UInt8(0)..<16 {
            // Only the low four bits count.
            #expect(ASCII.hexDigit(value | 0xA0) == Array("0123456789abcdef".utf8)[Int(value)])
            #expect(
                ASCII.capitalHexDigit(value | 0xF0) == Array("0123456789ABCDEF".utf8)[Int(value)])
        }
    }

    /// A combining mark forms a character with the space before it, which is neither of the two.
    @Test(
        arguments: [
            ("", ""), (" ", ""), ("\t \t", ""), ("a", "a"), (" a\t", "a"), ("a b", "a b"),
            ("\t a  b ", "a  b"), ("\na\r", "\na\r"), ("\u{A0}a\u{2003}", "\u{A0}a\u{2003}"),
            (" \u{301}a ", "\u{301}a"),
        ])
    func `only spaces and tabs around a text are left out`(_ text: String, _ inner: String) {
        #expect(Array(text.withoutOuterSpace.utf8) == Array(inner.utf8))
        #expect(
            Array("(\(text))".dropFirst().dropLast().withoutOuterSpace.utf8) == Array(inner.utf8))
        #expect(Array(Array(text.utf8).withoutOuterSpace) == Array(inner.utf8))
        #expect(
            Array(Array("(\(text))".utf8)[1...].dropLast().withoutOuterSpace) == Array(inner.utf8))
    }

    @Test(
        arguments: [
            ("", ""), ("AbC-09", "abc-09"), ("\u{212A}ELVIN", "\u{212A}elvin"),
            ("\u{C4}\u{130}", "\u{C4}\u{130}"),
        ])
    func `only the letters of ASCII become lower case`(_ text: String, _ lower: String) {
        #expect(Array(text.lowercasedASCII.utf8) == Array(lower.utf8))
    }

    @Test func `runs of any length are equal only if every byte is`() {
        for count in 0...20 {
            let bytes = (0..<count).map { UInt8($0) }
            func isEqual(to other: [UInt8]) -> Bool {
                bytes.withUnsafeBytes { left in
                    other.withUnsafeBytes { left.hasSameBytes(as: $0) }
                }
            }
            #expect(isEqual(to: bytes))
            #expect(!isEqual(to: bytes + [0]))
            for index in 0..<count {
                var other = bytes
                other[index] ^= 0x80
                #expect(!isEqual(to: other))
            }
        }
    }

    @Test func `a byte is found wherever it is, and from wherever the search starts`() {
        for count in 0...20 {
            for place in 0...count {
                for other in [0x00, 0x0B, 0x09, 0x8A, 0xFF] as [UInt8] {
                    var bytes = [UInt8](repeating: other, count: count)
                    if place < count { bytes[place...] = [0x0A, 0x0B, 0x0A][...] }
                    for start in 0...place {
                        let found = bytes.span.firstIndex(of: 0x0A, from: start)
                        #expect(found == (place < count ? place : bytes.count))
                    }
                }
            }
        }
    }

    @Test(
        arguments: [
            ("accept", true, true), ("Accept", false, true), ("ACCEPT", false, true),
            ("accep", false, false), ("accept:", false, false), ("accepu", false, false),
            ("\u{61}ccep\u{54}", false, true), ("", false, false), ("!ccept", false, false),
        ])
    func `letter case counts if requested, and every byte counts`(
        _ text: String, isEqual: Bool, isCaseless: Bool
    ) {
        let bytes = Array(text.utf8)
        let word = Array("accept".utf8)
        let exact = bytes.span.equals("accept")
        #expect(exact == isEqual)
        let caseless = [
            bytes.span.equals(lowercase: "accept"), bytes.span.equals(lowercase: word.span),
            bytes.span.equalsIgnoringCase(word.span), word.span.equalsIgnoringCase(bytes.span),
        ]
        #expect(caseless == [Bool](repeating: isCaseless, count: 4))
        let longer = bytes + Array("; more".utf8)
        let starts = [
            longer.span.starts(with: "accept"), longer.span.starts(withLowercase: "accept"),
            longer.span.equals(lowercase: "accept"),
        ]
        let lower = text.lowercasedASCII
        #expect(starts == [text.hasPrefix("accept"), lower.hasPrefix("accept"), false])
    }

    @Test func `bytes that differ by more than the case of a letter are not equal`() {
        // Each pair differs in the bit that distinguishes the cases of a letter.
        for (one, other) in [("@", "`"), ("[", "{"), ("\u{0}", " "), ("1", "\u{11}")] {
            let (left, right) = (Array(one.utf8), Array(other.utf8))
            let equal = [
                left.span.equalsIgnoringCase(right.span), left.span.equals(lowercase: right.span),
                right.span.equals(lowercase: left.span),
            ]
            #expect(equal == [false, false, false])
        }
    }

    @Test(
        arguments: [
            ("", 0), ("pinfol", 0), ("pinfold", 1), ("1.1 pinfold, 1.1 pinfold", 2),
            ("Pinfold", 0), ("pinpinfoldfold", 1), ("pinfoldpinfold", 2),
        ])
    func `words are counted where they stand`(_ text: String, _ count: Int) {
        let bytes = Array(text.utf8)
        let found = bytes.span.occurrences(of: "pinfold")
        #expect(found == count)
    }
}
