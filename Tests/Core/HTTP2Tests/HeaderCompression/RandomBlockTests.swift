import TestSupport
import Testing

@testable import HTTP2

/// Blocks made at random of representations of every kind.
private struct BlockMaker {
    var random: SeededRandom
    /// How many fields the peer's table may have, which is not known exactly.
    var fields = 0

    mutating func block() -> [UInt8] {
        var block: [UInt8] = []
        while random.chance(8) { block += number(random.below(5000), bits: 5, pattern: 0x20) }
        for _ in 0..<random.below(12) {
            switch random.below(10) {
            case 0..<5: block += number(1 + random.below(62 + fields), bits: 7, pattern: 0x80)
            case 5, 6:
                block += literal(bits: 6, pattern: 0x40)
                fields = min(fields + 1, 60)
            default: block += literal(bits: 4, pattern: random.chance(50) ? 0x00 : 0x10)
            }
        }
        return block
    }

    private mutating func literal(bits: Int, pattern: UInt8) -> [UInt8] {
        let isIndexed = random.chance(60)
        let index = isIndexed ? 1 + random.below(61 + fields) : 0
        return number(index, bits: bits, pattern: pattern) + (isIndexed ? [] : string())
            + string()
    }

    private mutating func string() -> [UInt8] {
        let count = random.chance(3) ? random.below(3000) : random.below(60)
        let alphabet = random.pick([26, 96, 256])
        var bytes = (0..<count).map { _ in
            UInt8(truncatingIfNeeded: (alphabet == 256 ? 0 : 0x61) + random.below(alphabet))
        }
        let isCoded = random.chance(60)
        if isCoded { bytes = encodedWithCode(bytes) }
        return number(bytes.count, bits: 7, pattern: isCoded ? 0x80 : 0) + bytes
    }

    private func number(_ value: Int, bits: Int, pattern: UInt8) -> [UInt8] {
        var memory = [UInt8](repeating: 0, count: 8)
        let count = memory.withUnsafeMutableBytes {
            PrefixInteger.write(
                value, mask: 1 << bits - 1, pattern: pattern, to: $0.baseAddress!)
                - UnsafeMutableRawPointer($0.baseAddress!)
        }
        return Array(memory[..<count])
    }
}

@Suite("Blocks at random")
struct RandomBlockTests {
    /// Runs until a block is refused, with a new connection after that.
    @Test(arguments: UInt64(0)..<4)
    func `are decoded as RFC 7541 says, field by field, and refused for the same reason`(
        seed: UInt64
    ) {
        var maker = BlockMaker(random: SeededRandom(seed: seed))
        var decoder = HeaderDecoder()
        var reference = ReferenceDecoder()
        var (decoded, refused) = (0, 0)
        for round in 0..<700 {
            var block = maker.block()
            // Some are cut, and in some a bit is wrong.
            if round % 7 == 0 { block = Array(block.prefix(maker.random.below(block.count + 1))) }
            if round % 11 == 0, !block.isEmpty {
                block[maker.random.below(block.count)] ^= 1 << UInt8(maker.random.below(8))
            }
            if round % 5 == 0 { decoder.trim() }
            var (error, expectedError): (HeaderCompressionError?, HeaderCompressionError?)
            var (read, expected): ([DecodedField], [DecodedField]) = ([], [])
            do throws(HeaderCompressionError) {
                expected = try reference.decode(block)
            } catch let caught {
                expectedError = caught
            }
            do throws(HeaderCompressionError) {
                read = try fields(of: block, by: &decoder)
            } catch let caught {
                error = caught
            }
            guard error == expectedError, read == expected else {
                Issue.record(
                    "\(block): \(read) \(error as Any), not \(expected) \(expectedError as Any)")
                return
            }
            if error != nil {
                refused += 1
                decoder = HeaderDecoder()
                reference = ReferenceDecoder()
                maker.fields = 0
            } else {
                decoded += read.count
                guard decoder.tableSize == reference.size else {
                    Issue.record("\(decoder.tableSize) bytes, not \(reference.size)")
                    return
                }
            }
        }
        #expect(decoded > 500)
        #expect(refused > 50)
    }

    /// Wherever a block is cut, what was decoded before is what the whole block has there.
    @Test func `are refused when they are cut within a field`() throws {
        var maker = BlockMaker(random: SeededRandom(seed: 99))
        var (whole, cut) = (0, 0)
        for _ in 0..<100 {
            let block = maker.block()
            maker.fields = 0
            var decoder = HeaderDecoder()
            guard let all = try? fields(of: block, by: &decoder) else { continue }
            for count in 0..<block.count {
                var decoder = HeaderDecoder()
                var collector = FieldCollector()
                let part = Array(block[..<count])
                do throws(HeaderCompressionError) {
                    try decoder.decodeFields(part.span, into: &collector)
                    whole += 1
                } catch {
                    cut += 1
                    #expect(error == .truncatedBlock)
                }
                #expect(all.starts(with: collector.fields))
            }
        }
        #expect(whole > 20)
        #expect(cut > 1000)
    }
}
