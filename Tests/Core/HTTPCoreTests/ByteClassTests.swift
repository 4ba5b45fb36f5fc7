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
}
