import HTTPCore
import Testing

@Suite("Numbers in hexadecimal digits")
struct HexadecimalTests {
    @Test func `have zeros before them up to the number of digits`() {
        for number in 0...0xFFFF as ClosedRange<UInt32> {
            for digits in 0...6 {
                let text = String(hexadecimal: number, digits: digits)
                guard text.utf8.count == max(digits, String(number, radix: 16).utf8.count),
                    UInt32(text, radix: 16) == number, text == text.lowercased(),
                    String(hexadecimal: number, digits: digits, uppercase: true)
                        == text.uppercased()
                else {
                    Issue.record("\(number) in \(digits) digits: \(text)")
                    return
                }
            }
        }
    }

    @Test func `are whole in every width`() {
        #expect(String(hexadecimal: UInt8.max, digits: 1) == "ff")
        #expect(String(hexadecimal: UInt64.max, digits: 16) == "ffffffffffffffff")
        #expect(String(hexadecimal: UInt64(1), digits: 16) == "0000000000000001")
        #expect(
            String(hexadecimal: UInt128(0xAB), digits: 32, uppercase: true)
                == "000000000000000000000000000000AB")
        #expect(String(hexadecimal: UInt32(0), digits: 0) == "0")
    }
}

/// The values of the algorithm's authors. They are in names of files and in entity tags.
@Suite("FNV-1a")
struct FNV1aTests {
    @Test(
        arguments: [
            ("", 0x811c_9dc5, 0xcbf2_9ce4_8422_2325), ("a", 0xe40c_292c, 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0xbf9c_f968, 0x8594_4171_f739_67e8),
        ] as [(String, UInt32, UInt64)])
    func `is what its authors say`(text: String, short: UInt32, long: UInt64) {
        #expect(FNV1a.hash32(text) == short)
        #expect(FNV1a.hash(text) == long)
        #expect(text.utf8.reduce(FNV1a.start) { FNV1a.adding($1, to: $0) } == long)
    }
}
