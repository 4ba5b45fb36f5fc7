import HTTPCore
import Testing

@Suite("Base64")
struct Base64Tests {
    @Test(
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"), ("\u{3FF}>?", "z78+Pw=="),
        ])
    func `is that of RFC 4648 §10, both ways`(_ plain: String, _ encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.count(plain.utf8.count) == encoded.utf8.count)
        #expect(Base64.decode(encoded.utf8) == Array(plain.utf8))
    }

    @Test(
        arguments: [
            "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "=", "=g==", "Zg==Zg==", "Zg=g", "Zg===",
            "Zm9v=", "Zm9v====", "Zm-v", "Zm_v", "Zm9v\n", " Zm9v", "Zm9\u{1D5A}",
        ])
    func `is refused where it is not canonical`(_ text: String) {
        #expect(Base64.decode(text.utf8) == nil)
        var output: [UInt8] = []
        let isSpace: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x0A }
        let isRead = Base64.decode(text.utf8, into: &output, skipping: isSpace)
        #expect(isRead == text.utf8.contains(where: isSpace))
    }

    @Test(
        arguments: [
            ("Zm9v\nYmFy\n", "foobar"), (" Z g\n= = ", "f"), ("Zg==\n", "f"), ("\n", ""),
        ])
    func `is read around what is skipped, and appended`(_ text: String, _ plain: String) {
        var output: [UInt8] = [7]
        #expect(Base64.decode(text.utf8, into: &output) { $0 == 0x20 || $0 == 0x0A })
        #expect(output == [7] + Array(plain.utf8))
    }

    @Test func `has 64 digits, and padding is none of them`() {
        let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for byte in UInt8.min...UInt8.max {
            let index = Array(digits.utf8).firstIndex(of: byte)
            #expect(Base64.value(byte) == index.map { UInt32($0) }, "\(byte)")
        }
    }
}
