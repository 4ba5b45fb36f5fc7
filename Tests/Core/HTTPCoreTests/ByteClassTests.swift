import HTTPCore
import Testing

@Suite("Classes of bytes")
struct ByteClassTests {
    @Test func `the table agrees with the grammar for every byte`() {
        let letters = Set(0x41...0x5A).union(0x61...0x7A).map(UInt8.init)
        let digits = (0x30...0x39).map(UInt8.init)
        let token = Set(letters + digits + latin1("!#$%&'*+-.^_`|~"))
        let hexadecimal = Set(digits + latin1("abcdefABCDEF"))
        for byte in UInt8.min...UInt8.max {
            #expect(ByteClass.isToken(byte) == token.contains(byte), "\(byte)")
            #expect(ASCII.isToken(byte) == token.contains(byte), "\(byte)")
            #expect(ByteClass.isHexDigit(byte) == hexadecimal.contains(byte), "\(byte)")
            #expect((ASCII.hexValue(byte) != nil) == hexadecimal.contains(byte), "\(byte)")
            let isValue = byte == 9 || (byte >= 32 && byte != 127)
            #expect(ByteClass.isFieldValue(byte) == isValue, "\(byte)")
            let isTarget = byte > 32 && byte < 127 && byte != 0x23
            #expect(ByteClass.isTarget(byte) == isTarget, "\(byte)")
        }
    }

    @Test func `a token ends at the first byte that may not be in one, or at the end`() {
        for byte in UInt8.min...UInt8.max {
            let bytes = [0x61, 0x62, byte, 0x63]
            let isToken = ASCII.isToken(byte)
            #expect(bytes.span.endOfToken(from: 0, to: 4) == (isToken ? 4 : 2))
            #expect(bytes.span.endOfToken(from: 2, to: 4) == (isToken ? 4 : 2))
            #expect(bytes.span.endOfToken(from: 1, to: 2) == 2)
            #expect(bytes.span.endOfToken(from: 4, to: 4) == 4)
        }
    }
}
