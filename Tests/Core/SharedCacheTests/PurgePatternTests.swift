import TestSupport
import Testing

@testable import SharedCache

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

private func host(
    _ reach: PurgePattern.Reach, _ name: String, port: UInt16? = nil
) -> PurgePattern {
    .host(reach, name: bytes(name), port: port)
}

private func tag(_ name: String, of origin: String? = nil) -> PurgePattern {
    .tag(bytes(name), origin: origin.map { bytes($0) })
}

/// A URI, tags, a pattern, and whether it is about them: as for a gateway's own store.
private let patterns: [PurgePattern] = [
    .everything,
    host(.exact, "a.example.com"),
    host(.exact, "example.com"),
    host(.oneLabel, "example.com"),
    host(.oneLabel, "a.example.com"),
    host(.anyDepth, "example.com"),
    host(.anyDepth, "com"),
    host(.exact, "a.example.com", port: 443),
    host(.exact, "a.example.com", port: 80),
    host(.exact, "a.example.com", port: 8443),
    host(.anyDepth, "example.com", port: 443),
    host(.exact, "[::1]"),
    host(.exact, "[::1]", port: 8443),
    host(.anyDepth, "[::1]"),
    host(.anyDepth, "3.4"),
    tag("t"),
    tag("T"),
    tag("t", of: "https://a"),
    tag("t", of: "https://a:444"),
    .prefix(bytes("https://a/")),
    .prefix(bytes("https://a/x")),
    .prefix(bytes("https://a/xy")),
    .prefix([]),
    .prefix(bytes("https://a")),
    .key(bytes("https://a/x?y")),
    .key(bytes("https://a/x")),
]

@Suite("Patterns of purges")
struct PurgePatternTests {
    @Test func `are read as they were written`() {
        for pattern in patterns {
            let written = pattern.bytes
            #expect(written.withUnsafeBytes { PurgePattern($0) } == pattern)
            for count in 0..<written.count {
                let cut = Array(written[..<count])
                #expect(cut.withUnsafeBytes { PurgePattern($0) } == nil, "\(pattern) \(count)")
            }
            let longer = written + [0]
            #expect(longer.withUnsafeBytes { PurgePattern($0) } == nil)
        }
    }

    @Test func `are nothing else`() {
        let wrong: [[UInt8]] = [
            [8, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 65],
            [0, 0, 0, 0, 0, 1, 0, 65], [1, 0, 0, 0, 0, 0, 0], [6, 1, 0, 0, 0, 0, 0],
            [7, 0, 0, 0, 0, 1, 0, 65], [4, 0, 0, 0, 0, 1, 0, 65],
            [6, 0, 0, 0xFF, 0xFF, 0, 0] + [UInt8](repeating: 65, count: 0xFFFF),
        ]
        for bytes in wrong { #expect(bytes.withUnsafeBytes { PurgePattern($0) } == nil) }
    }

    @Test func `are bounded`() {
        let longest = [UInt8](repeating: 65, count: PurgePattern.maximumBytes)
        for pattern in [.prefix(longest), .key(longest), .tag(longest, origin: longest)]
            as [PurgePattern]
        {
            #expect(pattern.isWithinLimits)
            #expect(pattern.bytes.withUnsafeBytes { PurgePattern($0) } == pattern)
        }
        for pattern in [
            .prefix(longest + [65]), .key(longest + [65]), .tag(longest + [65], origin: nil),
            .tag([], origin: longest + [65]), .host(.exact, name: longest + [65], port: nil),
        ] as [PurgePattern] {
            #expect(!pattern.isWithinLimits)
            #expect(PurgeEntry(pattern, isSoft: false, seconds: 0, by: []) == nil)
        }
        let name = [UInt8](repeating: 65, count: 256)
        #expect(PurgeEntry(.everything, isSoft: false, seconds: 0, by: name) == nil)
    }

    @Test func `of entries that cannot be read are everything`() {
        for error: SharedRecordError in [.unsupportedField(0x8000), .malformed] {
            let (pattern, isSoft) = PurgeEntry.replacement(for: error)
            #expect(pattern == .everything)
            #expect(!isSoft)
        }
        for error: SharedRecordError in [
            .notOurs, .unknownMajor(2), .unknownSecret(1), .wrongCode, .wrongBody, .wrongLength,
            .otherKind(1), .otherKey,
        ] {
            let (pattern, isSoft) = PurgeEntry.replacement(for: error)
            #expect(pattern == .everything)
            #expect(isSoft)
        }
    }
}

@Suite("Positions in the stream of purges")
struct PurgePositionTests {
    @Test func `are read as the engine writes them`() {
        let good: [(String, UInt64, UInt64)] = [
            ("0-0", 0, 0), ("1526919030474-55", 1_526_919_030_474, 55),
            ("18446744073709551615-18446744073709551615", .max, .max),
        ]
        for (text, milliseconds, sequence) in good {
            let position = PurgePosition(epoch: 3, entry: bytes(text))
            #expect(
                position
                    == PurgePosition(epoch: 3, milliseconds: milliseconds, sequence: sequence))
            #expect(position?.entry == bytes(text))
        }
        for text in [
            "", "-", "1", "1-", "-1", "1-2-3", "1-x", "+1-2", " 1-2", "1_0-2",
            "18446744073709551616-0", "000000000000000000001-0",
        ] {
            #expect(PurgePosition(epoch: 3, entry: bytes(text)) == nil, "\(text)")
        }
    }

    @Test
    func `that do not fit into a number are after all others as purges, and before as values`() {
        for sequence: UInt64 in [1 << 20, 1 << 20 + 1, .max] {
            let large = PurgePosition(epoch: 1, milliseconds: 7, sequence: sequence)
            let same = PurgePosition(epoch: 1, milliseconds: 7, sequence: 9)
            #expect(large.firstSerial < same.firstSerial)
            #expect(large.lastSerial > same.lastSerial)
            #expect(large.firstSerial < large.lastSerial)
        }
        let far = PurgePosition(epoch: 1, milliseconds: .max, sequence: 5)
        #expect(far.firstSerial < far.lastSerial)
    }

    @Test func `have the order of their numbers in one epoch, and none in two`() {
        var random = SeededRandom(seed: 2)
        for _ in 0..<2000 {
            let (one, other) = (
                PurgePosition(
                    epoch: 1, milliseconds: random.next() >> UInt64(24 + random.below(40)),
                    sequence: random.next() >> UInt64(48 + random.below(16))),
                PurgePosition(
                    epoch: 1, milliseconds: random.next() >> UInt64(24 + random.below(40)),
                    sequence: UInt64(random.below(3)))
            )
            #expect(one.isBefore(other) == (one.firstSerial < other.firstSerial))
            #expect(one.firstSerial == one.lastSerial)
            let same = PurgePosition(
                epoch: 1, milliseconds: one.milliseconds, sequence: one.sequence)
            #expect(one.isBefore(same) == false)
            let foreign = PurgePosition(
                epoch: 2, milliseconds: one.milliseconds, sequence: one.sequence)
            #expect(one.isBefore(foreign) == nil)
        }
    }
}
