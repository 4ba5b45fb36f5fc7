import HTTPCore
import Testing

@testable import CachePolicy

@Suite("Bytes are told apart here as they are in HTTPCore")
struct BytesTests {
    @Test("every test gives the same answer for every byte")
    func classes() {
        for byte in UInt8.min...UInt8.max {
            #expect(Bytes.isToken(byte) == ByteClass.isToken(byte))
            #expect(Bytes.isDigit(byte) == ByteClass.isDigit(byte))
            #expect(Bytes.isWhitespace(byte) == ByteClass.isWhitespace(byte))
            #expect(Bytes.lowercased(byte) == ByteClass.lowercased(byte))
        }
    }

    @Test("runs of any length are equal only if every byte is")
    func equality() {
        for count in 0...20 {
            let bytes = (0..<count).map { UInt8($0) }
            func isEqual(to other: [UInt8]) -> Bool {
                bytes.withUnsafeBytes { left in
                    other.withUnsafeBytes { Bytes.areEqual(left, $0) }
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

    @Test("the first line feed is found wherever it is, and from wherever the search starts")
    func lineFeed() {
        for count in 0...20 {
            for place in 0...count {
                for other in [0x00, 0x0B, 0x09, 0x8A, 0xFF] as [UInt8] {
                    var bytes = [UInt8](repeating: other, count: count)
                    if place < count { bytes[place...] = [0x0A, 0x0B, 0x0A][...] }
                    for start in 0...place {
                        let found = Bytes.firstLineFeed(from: start, in: bytes.span)
                        #expect(found == (place < count ? place : bytes.count))
                    }
                }
            }
        }
    }
}
