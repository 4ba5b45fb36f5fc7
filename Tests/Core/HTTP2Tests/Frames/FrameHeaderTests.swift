import HTTP2
import HTTPCore
import TestSupport
import Testing

@Suite("A frame header")
struct FrameHeaderTests {
    @Test func `is read as it was written, whatever is in it`() {
        var random = SeededRandom(seed: 1)
        for _ in 0..<1000 {
            let header = FrameHeader(
                length: random.below(1 << 24),
                type: FrameType(rawValue: UInt8(random.below(256))),
                flags: FrameFlags(rawValue: UInt8(random.below(256))),
                streamID: UInt32(random.below(1 << 31)))
            let bytes = [UInt8](unsafeUninitializedCapacity: 9) { memory, count in
                var writer = HeadWriter(UnsafeMutableRawBufferPointer(memory))
                writer.append(header)
                count = writer.count
            }
            #expect(FrameHeader(reading: bytes.span.bytes) == header)
        }
    }
}
