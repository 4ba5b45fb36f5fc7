import HTTPCore
import TestSupport
import Testing

@testable import HTTP2

/// A block that is refused, by a decoder that has read another one before.
struct RefusedBlock: CustomStringConvertible {
    var before = ""
    var bytes: String
    var error: HeaderCompressionError

    var description: String { "\(bytes) after \(before.isEmpty ? "nothing" : before)" }
}

@Suite("Header blocks are decoded")
struct HeaderDecoderTests {
    /// `a: b`, added to the table.
    static let added = "40 0161 0162"

    static let refused = [
        RefusedBlock(bytes: "80", error: .indexZero),
        RefusedBlock(bytes: "be", error: .indexOutOfRange),
        RefusedBlock(bytes: "ff00", error: .indexOutOfRange),
        RefusedBlock(bytes: "ff ff ff ff 7f", error: .indexOutOfRange),
        RefusedBlock(before: added, bytes: "bf", error: .indexOutOfRange),
        RefusedBlock(before: added, bytes: "20 be", error: .indexOutOfRange),
        RefusedBlock(bytes: "7e 00", error: .indexOutOfRange),
        RefusedBlock(bytes: "0f 2f 00", error: .indexOutOfRange),
        RefusedBlock(bytes: "ff ff ff ff ff 00", error: .integerTooLarge),
        RefusedBlock(bytes: "00 7f ff ff ff ff 00", error: .integerTooLarge),
        RefusedBlock(bytes: "3f ff ff ff ff 00", error: .integerTooLarge),
        RefusedBlock(bytes: "ff", error: .truncatedBlock),
        RefusedBlock(bytes: "40", error: .truncatedBlock),
        RefusedBlock(bytes: "40 01", error: .truncatedBlock),
        RefusedBlock(bytes: "40 0161", error: .truncatedBlock),
        RefusedBlock(bytes: "40 0161 01", error: .truncatedBlock),
        RefusedBlock(bytes: "40 0161 7f", error: .truncatedBlock),
        RefusedBlock(bytes: "3f", error: .truncatedBlock),
        RefusedBlock(bytes: "40 0161 81ff", error: .malformedPadding),
        RefusedBlock(bytes: "40 81ff 0162", error: .malformedPadding),
        RefusedBlock(bytes: "00 0161 84 ff ff ff ff", error: .endOfStringSymbol),
        RefusedBlock(bytes: "3f e2 1f", error: .tableSizeTooLarge),
        RefusedBlock(bytes: "82 20", error: .lateTableSize),
        RefusedBlock(bytes: "20 82 3f e1 1f", error: .lateTableSize),
    ]

    @Test(arguments: refused)
    func `only if they are valid`(block: RefusedBlock) throws {
        var decoder = HeaderDecoder()
        _ = try fields(of: hex(block.before), by: &decoder)
        #expect(fault(of: hex(block.bytes), by: &decoder) == block.error)
    }

    @Test func `with every reason having a token and an explanation of its own`() {
        let all = HeaderCompressionError.allCases
        #expect(Set(all.map(\.reason.description)).count == all.count)
        #expect(Set(all.map(\.explanation.description)).count == all.count)
        let tested = Set(Self.refused.map(\.error)).union([.tableSizeMissing, .expandsTooMuch])
        #expect(tested == Set(all))
    }

    @Test func `with names from either table, even one that its own addition drops`() throws {
        var decoder = HeaderDecoder()
        let name = String(repeating: "n", count: 2000)
        let first = literal(name, String(repeating: "v", count: 2000), pattern: 0x40)
        #expect(try fields(of: first, by: &decoder).count == 1)
        #expect(decoder.tableSize == 4032)
        // The name of index 62, with a value that leaves no room for the old field.
        let value = String(repeating: "w", count: 1900)
        let second = [0x7E] + string(value)
        #expect(try fields(of: second, by: &decoder) == [DecodedField(name, value)])
        #expect(decoder.tableSize == 3932)
        // One that is larger than the table empties it.
        let third = [0x7E] + string(String(repeating: "x", count: 5000))
        #expect(try fields(of: third, by: &decoder).first?.value.count == 5000)
        #expect(decoder.tableSize == 0)
        #expect(fault(of: [0xBE], by: &decoder) == .indexOutOfRange)
    }

    @Test func `with fields that just fit the table`() throws {
        for extra in 0...1 {
            var decoder = HeaderDecoder()
            let value = String(repeating: "v", count: 4096 - 32 - 1 + extra)
            #expect(try fields(of: literal("n", value, pattern: 0x40), by: &decoder).count == 1)
            #expect(decoder.tableSize == (extra == 0 ? 4096 : 0))
        }
    }

    @Test func `with the table sizes that the peer chooses, and must choose`() throws {
        var decoder = HeaderDecoder()
        _ = try fields(of: hex(Self.added + "40 0163 0164"), by: &decoder)
        #expect(decoder.tableSize == 68)
        // Room for one; then a larger limit, which brings nothing back.
        let resized = try fields(of: hex("3f 03 3f e1 1f be"), by: &decoder)
        #expect(resized == [DecodedField("c", "d")])
        #expect(decoder.tableSize == 34)
        decoder.peerAcknowledged(tableLimit: 100)
        #expect(fault(of: hex("82"), by: &decoder) == .tableSizeMissing)
        #expect(fault(of: hex("3f 46 82"), by: &decoder) == .tableSizeTooLarge)
        #expect(try fields(of: hex("3f 45 be"), by: &decoder) == [DecodedField("c", "d")])
        #expect(try fields(of: hex("be"), by: &decoder) == [DecodedField("c", "d")])
        // A limit that is raised obliges to nothing.
        decoder.peerAcknowledged(tableLimit: 4096)
        #expect(try fields(of: hex("be"), by: &decoder) == [DecodedField("c", "d")])
    }

    @Test func `with literals that are larger than any table`() throws {
        var decoder = HeaderDecoder()
        var reference = ReferenceDecoder()
        let long = String(repeating: "0123456789abcdef", count: 1000)
        for pattern: UInt8 in [0x40, 0x00, 0x10] {
            let blocks: [[UInt8]] = [
                literal("a", "b", pattern: 0x40), literal(long, long, pattern: pattern),
                literal("name", long, pattern: pattern), literal(long, "", pattern: pattern),
                literal("c", String(long.prefix(3000)), pattern: pattern), [0x80 | 62],
            ]
            for block in blocks {
                let expected = try? reference.decode(block)
                #expect((try? fields(of: block, by: &decoder)) == expected)
                #expect(decoder.tableSize == reference.size)
            }
        }
    }

    @Test func `but not when they expand to a thousand times their size`() throws {
        var decoder = HeaderDecoder()
        let start = literal(String(repeating: "n", count: 4000), "", pattern: 0x40)
        let count = HeaderDecoder.expansionLimit / 4004
        let allowed = start + Array(repeating: [UInt8(0x7E), 0x00], count: count - 1).joined()
        var collector = FieldCollector()
        try decoder.decodeFields(allowed.span, into: &collector)
        #expect(collector.fields.count == count)
        let block = start + Array(repeating: [UInt8(0x7E), 0x00], count: count).joined()
        #expect(fault(of: block, by: &decoder) == .expandsTooMuch)
    }

    @Test func `with the same table when a block is discarded`() throws {
        var decoder = HeaderDecoder()
        let block = hex(Self.added)
        try decoder.discard(block.span)
        #expect(try fields(of: [0xBE], by: &decoder) == [DecodedField("a", "b")])
    }
}

/// A literal whose strings are not coded.
func literal(_ name: String, _ value: String, pattern: UInt8) -> [UInt8] {
    [pattern] + string(name) + string(value)
}

/// A string that is not coded.
func string(_ text: String) -> [UInt8] {
    var memory = [UInt8](repeating: 0, count: 8)
    let count = memory.withUnsafeMutableBytes {
        PrefixInteger.write(text.utf8.count, mask: 0x7F, pattern: 0, to: $0.baseAddress!)
            - UnsafeMutableRawPointer($0.baseAddress!)
    }
    return Array(memory[..<count]) + text.utf8
}
