import HTTPCore
import Testing

@Suite("SipHash")
struct SipHashTests {
    private static let key: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908)

    /// Of the reference implementation (`vectors_sip128`): the key 0, 1, … 15, the message 0, 1, …
    @Test(
        arguments: [
            (0, "a3817f04ba25a8e66df67214c7550293"), (1, "da87c1d86b99af44347659119b22fc45"),
            (2, "8177228da4a45dc7fca38bdef60affe4"), (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
            (8, "3b62a9ba6258f5610f83e264f31497b4"), (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
        ])
    func `has the reference's 128 bits`(count: Int, expected: String) {
        let bytes = (0..<count).map { UInt8($0) }
        let hash = bytes.withUnsafeBytes { SipState.hash128($0, key: Self.key) }
        let digits = [hash.0, hash.1].map { word in
            let text = String(word.byteSwapped, radix: 16)
            return String(repeating: "0", count: 16 - text.count) + text
        }
        #expect(digits.joined() == expected)
    }

    @Test func `differs by every byte and by length`() {
        var seen: Set<UInt64> = []
        for count in 0..<40 {
            var bytes = [UInt8](repeating: 0, count: count)
            seen.insert(bytes.withUnsafeBytes { SipState.hash128($0, key: Self.key).0 })
            for index in bytes.indices {
                bytes[index] = 1
                seen.insert(bytes.withUnsafeBytes { SipState.hash128($0, key: Self.key).0 })
                bytes[index] = 0
            }
        }
        #expect(seen.count == 40 + 40 * 39 / 2)
    }
}
