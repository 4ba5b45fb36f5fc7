import Testing

@testable import ContentCoding

@Suite("Content encoded while it arrives")
struct StreamEncoderTests {
    /// Bytes that do not compress well, always the same.
    private static func noise(_ count: Int) -> [UInt8] {
        var state: UInt64 = 1
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }

    @Test(
        arguments: ContentCoding.allCases, [0, 1, 1000, 65_536, 300_000])
    func `is the same when it is decoded, however it is divided`(
        coding: ContentCoding, count: Int
    ) throws {
        for content in [[UInt8](repeating: 7, count: count), Self.noise(count)] {
            for size in [1, 777, 65_536, 1 << 20] where size > 1 || count < 2000 {
                var encoder = StreamEncoder(coding)
                var encoded: [UInt8] = []
                for start in stride(from: 0, to: count, by: size) {
                    encoded += try encoder.encode(
                        Array(content[start..<min(start + size, count)]))
                }
                encoded += try encoder.finish()
                let decoded = try ContentCodings.decode(
                    encoded, codings: [coding], maximum: count)
                #expect(decoded == content)
                #expect(encoded.count < count + count >> 8 + 64)
            }
        }
    }
}
