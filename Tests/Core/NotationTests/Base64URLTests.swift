import HTTPCore
import Testing

@Suite("Base64 for URLs")
struct Base64URLTests {
    private func decode(_ text: String) -> [UInt8]? { Base64.decode(urlSafe: text.utf8) }

    @Test(
        arguments: [
            ("", []), ("Zg", [0x66]), ("Zm8", [0x66, 0x6F]), ("Zm9v", [0x66, 0x6F, 0x6F]),
            ("-_8", [0xFB, 0xFF]), ("AAAA", [0, 0, 0]), ("_____w", [255, 255, 255, 255]),
        ] as [(String, [UInt8])])
    func `canonical texts are decoded`(_ text: String, _ bytes: [UInt8]) {
        #expect(decode(text) == bytes)
    }

    @Test(arguments: [
        "Z", "Zg=", "Zg==", "Zm8=", "Zh", "Zm9", "Zm9vZ", "+/8", "-/8", "Zm 8", "Zm8\n", "Zm8.",
        "=",
        "Zm\u{e9}",
    ])
    func `others are refused`(_ text: String) { #expect(decode(text) == nil) }

    /// Every text of up to three digits has at most one form.
    @Test func `no two texts stand for the same bytes`() {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
        var seen: Set<[UInt8]> = []
        var count = 0
        for one in digits {
            for other in digits {
                guard let bytes = Base64.decode(urlSafe: [one, other]) else { continue }
                count += 1
                seen.insert(bytes)
            }
        }
        #expect(count == 256 && seen.count == 256)
    }
}
