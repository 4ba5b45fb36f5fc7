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
private let matches: [(String, [String], PurgePattern, Bool)] = [
    ("https://a.example.com/x", [], .everything, true),
    ("", [], .everything, true),
    ("https://a.example.com/x", [], host(.exact, "a.example.com"), true),
    ("https://a.example.com/x", [], host(.exact, "example.com"), false),
    ("https://a.example.com/x", [], host(.oneLabel, "example.com"), true),
    ("https://a.example.com/x", [], host(.oneLabel, "a.example.com"), false),
    ("https://b.a.example.com/x", [], host(.oneLabel, "example.com"), false),
    ("https://b.a.example.com/x", [], host(.anyDepth, "example.com"), true),
    ("https://example.com/x", [], host(.anyDepth, "example.com"), true),
    ("https://example.com/x", [], host(.anyDepth, "com"), true),
    ("https://badexample.com/x", [], host(.anyDepth, "example.com"), false),
    ("https://badexample.com/x", [], host(.oneLabel, "example.com"), false),
    ("https://.example.com/x", [], host(.oneLabel, "example.com"), true),
    ("https://a.example.com/x", [], host(.exact, "a.example.com", port: 443), true),
    ("http://a.example.com/x", [], host(.exact, "a.example.com", port: 80), true),
    ("http://a.example.com/x", [], host(.exact, "a.example.com", port: 443), false),
    ("https://a.example.com:8443/x", [], host(.exact, "a.example.com", port: 8443), true),
    ("https://a.example.com:8443/x", [], host(.exact, "a.example.com"), true),
    ("https://a.example.com:8443/x", [], host(.anyDepth, "example.com", port: 443), false),
    ("https://[::1]/x", [], host(.exact, "[::1]"), true),
    ("https://[::1]:8443/x", [], host(.exact, "[::1]", port: 8443), true),
    ("https://[::1]/x", [], host(.anyDepth, "[::1]"), true),
    ("https://1.2.3.4/x", [], host(.anyDepth, "3.4"), true),
    ("https://a/x", ["t", "u"], tag("t"), true),
    ("https://a/x", ["t", "u"], tag("T"), false),
    ("https://a/x", [], tag("t"), false),
    ("https://a/x", ["t"], tag("t", of: "https://a"), true),
    ("https://a:444/x", ["t"], tag("t", of: "https://a:444"), true),
    ("https://a:444/x", ["t"], tag("t", of: "https://a"), false),
    ("http://a/x", ["t"], tag("t", of: "https://a"), false),
    ("https://a/x", [], .prefix(bytes("https://a/")), true),
    ("https://a/x", [], .prefix(bytes("https://a/x")), true),
    ("https://a/x", [], .prefix(bytes("https://a/xy")), false),
    ("https://a/x", [], .prefix([]), true),
    ("https://ab/x", [], .prefix(bytes("https://a")), true),
    ("https://a/x?y", [], .key(bytes("https://a/x?y")), true),
    ("https://a/x?y", [], .key(bytes("https://a/x")), false),
]

private let scopes: [(PurgePattern, GenerationScope)] = [
    (.everything, .all),
    (host(.exact, "a", port: 5), .host(bytes("a"))),
    (host(.oneLabel, "a"), .all),
    (host(.anyDepth, "a"), .all),
    (tag("t"), .tag(bytes("t"))),
    (tag("t", of: "https://a"), .tag(bytes("t"))),
    (.key(bytes("https://a:5/x")), .host(bytes("a"))),
    (.key(bytes("https://[::1]:5/x")), .host(bytes("[::1]"))),
    (.prefix(bytes("https://a/")), .host(bytes("a"))),
    (.prefix(bytes("https://a:5/x")), .host(bytes("a"))),
    (.prefix(bytes("https://a")), .all),
    (.prefix(bytes("https://a:5")), .all),
    (.prefix(bytes("https://")), .all),
    (.prefix(bytes("https:/")), .all),
    (.prefix(bytes("h")), .all),
    (.prefix([]), .all),
]

@Suite("Patterns of purges")
struct PurgePatternTests {
    @Test func `are about the same as in a store of one's own`() {
        for (uri, tags, pattern, isAbout) in matches {
            let resource = SharedResource(uri: bytes(uri), tags: tags.map { bytes($0) })
            #expect(pattern.matches(resource) == isAbout, "\(uri) \(tags) \(pattern)")
        }
    }

    @Test func `have one scope, which is read for all that they are about`() {
        for (pattern, scope) in scopes { #expect(pattern.scope == scope, "\(pattern)") }
        for (uri, tags, pattern, isAbout) in matches where isAbout {
            let resource = SharedResource(uri: bytes(uri), tags: tags.map { bytes($0) })
            #expect(resource.scopes.contains(pattern.scope), "\(uri) \(pattern)")
        }
    }

    /// Whatever a pattern and a resource are made of: if it is about it, its scope is read.
    @Test func `are never about something for which their scope is not read`() {
        var random = SeededRandom(seed: 11)
        let hosts = ["a", "b.a", "c.b.a", "a.b", "[::1]", "1.2.3.4", "ab"]
        let ports = ["", ":80", ":8080"]
        let paths = ["/", "/x", "/x/y?z=/"]
        var found = 0
        for _ in 0..<20_000 {
            let origin =
                random.pick(["http://", "https://"]) + random.pick(hosts) + random.pick(ports)
            let uri = bytes(origin + random.pick(paths))
            let resource = SharedResource(
                uri: uri, tags: [bytes("t"), bytes("u")].filter { _ in random.chance(50) })
            let pattern: PurgePattern
            switch random.below(5) {
            case 0:
                pattern = host(
                    random.pick(PurgePattern.Reach.allCases), random.pick(hosts),
                    port: random.pick([nil, 80, 8080]))
            case 1: pattern = tag(random.pick(["t", "u", "v"]), of: random.pick([nil, origin]))
            case 2: pattern = .prefix(Array(uri.prefix(random.below(uri.count + 1))))
            case 3: pattern = .key(uri)
            default: pattern = .everything
            }
            guard pattern.matches(resource) else { continue }
            found += 1
            #expect(resource.scopes.contains(pattern.scope), "\(uri) \(pattern)")
        }
        #expect(found > 5000)
    }

    @Test func `are read as they were written`() {
        for pattern in matches.map(\.2) + scopes.map(\.0) {
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
        for error: SharedRecordError in [.unknownMajor(2), .unsupportedField(0x8000), .malformed] {
            let (pattern, isSoft) = PurgeEntry.replacement(for: error)
            #expect(pattern == .everything)
            #expect(!isSoft)
        }
        for error: SharedRecordError in [
            .notOurs, .unknownSecret(1), .wrongCode, .wrongBody, .wrongLength, .otherKind(1),
            .otherKey,
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

    @Test func `have the order of their texts in one epoch, and none in two`() {
        var random = SeededRandom(seed: 2)
        for _ in 0..<2000 {
            let (one, other) = (
                PurgePosition(
                    epoch: 1, milliseconds: random.next() >> UInt64(random.below(60)),
                    sequence: random.next() >> UInt64(random.below(60))),
                PurgePosition(
                    epoch: 1, milliseconds: random.next() >> UInt64(random.below(60)),
                    sequence: UInt64(random.below(3)))
            )
            #expect(
                one.isBefore(other)
                    == one.sortable.lexicographicallyPrecedes(other.sortable))
            let same = PurgePosition(
                epoch: 1, milliseconds: one.milliseconds, sequence: one.sequence)
            #expect(one.isBefore(same) == false)
            let foreign = PurgePosition(
                epoch: 2, milliseconds: one.milliseconds, sequence: one.sequence)
            #expect(one.isBefore(foreign) == nil)
            #expect(one.sortable.count == 48)
        }
    }
}
