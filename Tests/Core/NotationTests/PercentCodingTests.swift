import HTTPCore
import Testing

@Suite("Percent-encoding")
struct PercentCodingTests {
    @Test(
        arguments: [
            ("", ""), ("a", "a"), ("%41", "A"), ("a%2fb%2F", "a/b/"), ("%25", "%"),
            ("%2525", "%25"),
            ("%e2%82%AC", "€"), ("+", "+"), ("%2B", "+"),
        ])
    func `two digits of either case stand for a byte`(_ text: String, _ plain: String) {
        #expect(PercentCoding.decode(text.utf8) == Array(plain.utf8))
        #expect(PercentCoding.decodeEscapes(text.utf8) == Array(plain.utf8))
    }

    /// Number parsers accept a sign; an escape has none. Nor is a digit of another script accepted.
    @Test(
        arguments: [
            ("%", "%"), ("a%", "a%"), ("%4", "%4"), ("%4g", "%4g"), ("%g4", "%g4"), ("%+1", "%+1"),
            ("%-0", "%-0"), ("% 1", "% 1"), ("%%41", "%A"), ("%4%31", "%41"), ("%1１", "%1１"),
        ])
    func `without two digits a percent sign is no escape`(_ text: String, _ plain: String) {
        #expect(PercentCoding.decode(text.utf8) == nil)
        #expect(PercentCoding.decodeEscapes(text.utf8) == Array(plain.utf8))
    }

    @Test func `every byte is written by two capital digits, and read again`() {
        for byte in UInt8.min...UInt8.max {
            let text = PercentCoding.encode([byte]) { _ in false }
            #expect(text.count == 3 && text.first == UInt8(ascii: "%"))
            #expect(!text.contains { (0x61...0x66).contains($0) })
            #expect(PercentCoding.decode(text) == [byte])
        }
        let text = PercentCoding.encode("a b/€".utf8) { ASCII.isLetter($0) }
        #expect(String(decoding: text, as: UTF8.self) == "a%20b%2F%E2%82%AC")
    }
}
