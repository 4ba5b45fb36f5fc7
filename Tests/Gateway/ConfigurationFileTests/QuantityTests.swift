import Testing

@testable import Gateway

@Suite("Sizes and durations")
struct QuantityTests {
    @Test(arguments: [
        ("0", 0), ("1", 1), ("4096", 4_096), ("7B", 7), ("512KB", 512_000), ("1MB", 1_000_000),
        ("2GB", 2_000_000_000), ("1TB", 1_000_000_000_000), ("32KiB", 32_768),
        ("64MiB", 67_108_864), ("1GiB", 1_073_741_824), ("2TiB", 2_199_023_255_552),
        ("007KB", 7_000),
    ])
    func `sizes are whole numbers with decimal or binary units`(text: String, bytes: Int) {
        #expect(Quantity.bytes(text) == bytes)
    }

    @Test(arguments: [
        "", "KiB", "-1", "+1", "1.5GiB", "1 KiB", "64mib", "64MIB", "64M", "1k", "0x10", "1e3",
        " 1",
        "1_000", "٣KB", "9223372036854775808", "9007199254740992KiB", "1KiB\n", "1KiBKiB",
    ])
    func `malformed or too large sizes are refused`(text: String) {
        #expect(Quantity.bytes(text) == nil)
    }

    @Test(
        arguments: [
            ("0s", 0), ("170ms", 170), ("1s", 1_000), ("90s", 90_000), ("5m", 300_000),
            ("1h", 3_600_000), ("2d", 172_800_000),
        ] as [(String, Int64)])
    func `durations are whole numbers with a unit`(text: String, milliseconds: Int64) {
        #expect(Quantity.milliseconds(text) == milliseconds)
    }

    @Test(arguments: [
        "", "1", "0", "s", "1 s", "1.5s", "-1s", "1S", "1min", "1us", "106751991168d",
    ])
    func `durations without a unit or with another are refused`(text: String) {
        #expect(Quantity.milliseconds(text) == nil)
    }

    @Test(
        arguments: [
            ("64M", "64MiB"), ("64m", "64MiB"), ("64mb", "64MB"), ("64 MiB", "64MiB"),
            ("1k", "1KiB"), ("2Gi", "2GiB"), ("100 bytes", "100B"), ("64X", nil), ("M", nil),
            ("1.5GiB", nil), ("-1", nil), ("9999999999999999K", nil),
        ] as [(String, String?)])
    func `an error for a size in another program's units suggests the right one`(
        text: String, meant: String?
    ) {
        #expect(Quantity.meantBytes(text) == meant)
        #expect(meant.map { Quantity.bytes($0) != nil } ?? true)
    }

    @Test(
        arguments: [
            ("30", "30s"), ("5min", "5m"), ("1 hour", "1h"), ("10S", "10s"), ("100msec", "100ms"),
            ("2 Days", "2d"), ("1w", nil), ("1.5s", nil), ("", nil),
        ] as [(String, String?)])
    func `an error for a duration in other units suggests the right one`(
        text: String, meant: String?
    ) {
        #expect(Quantity.meantDuration(text) == meant)
        #expect(meant.map { Quantity.milliseconds($0) != nil } ?? true)
    }

    @Test func `an error suggests what was probably meant`() {
        #expect(
            errors(of: "cache: { memory: 64M }") == [
                "gateway.yaml:1: cache.memory: \"64M\" is not valid (did you mean 64MiB?); "
                    + "expected a size from 0 to 1024TiB, in bytes or with KB, MB, GB, TB, KiB, "
                    + "MiB, GiB or TiB"
            ])
        #expect(
            errors(of: "timeouts: { idle: 60 }").first?.contains("(did you mean 60s?)") == true)
    }

    @Test func `texts are the shortest exact ones and read back the same`() {
        #expect(Quantity.text(bytes: 67_108_864) == "64MiB")
        #expect(Quantity.text(bytes: 1_000) == "1000")
        #expect(Quantity.text(bytes: 1_536) == "1536")
        #expect(Quantity.text(bytes: 0) == "0")
        #expect(Quantity.text(milliseconds: 170) == "170ms")
        #expect(Quantity.text(milliseconds: 60_000) == "1m")
        #expect(Quantity.text(milliseconds: 90_000) == "90s")
        #expect(Quantity.text(milliseconds: 0) == "0s")
        for value in [0, 1, 999, 1_000, 1_024, 65_537, 3 << 20, 5 << 30, 1 << 50, .max] {
            #expect(Quantity.bytes(Quantity.text(bytes: value)) == value)
        }
        for value: Int64 in [0, 1, 999, 1_000, 61_000, 86_400_000, 86_400_001] {
            #expect(Quantity.milliseconds(Quantity.text(milliseconds: value)) == value)
        }
    }
}

@Suite("The nearest key")
struct NearestKeyTests {
    @Test(arguments: [
        ("listner", "listeners"), ("Listeners", "listeners"), ("cahce", "cache"),
        ("timeout", "timeouts"), ("acess", "access"), ("hosst", "hosts"), ("pinset", "pinsets"),
    ])
    func `a misspelt key is nearest to the one meant`(written: String, meant: String) {
        #expect(
            NearestKey.nearest(to: written, among: SectionName.allCases.map(\.rawValue)) == meant)
    }

    @Test(arguments: [
        ("", "", 0), ("", "abc", 3), ("abc", "abc", 0), ("abc", "abd", 1), ("abc", "ab", 1),
        ("abc", "bac", 1), ("kitten", "sitting", 3), ("ca", "abc", 3),
    ])
    func `the distance counts insertions, deletions, replacements and swaps`(
        left: String, right: String, distance: Int
    ) {
        #expect(NearestKey.distance(Array(left.utf8), Array(right.utf8)) == distance)
        #expect(NearestKey.distance(Array(right.utf8), Array(left.utf8)) == distance)
    }

    @Test(arguments: ["frobnicate", "xyz", "upstreams", "l", "proxy", "database"])
    func `a key that resembles no other has no nearest key`(written: String) {
        #expect(
            NearestKey.nearest(to: written, among: SectionName.allCases.map(\.rawValue)) == nil)
    }

    @Test func `little of what is long is compared`() {
        let long = String(repeating: "a", count: 64)
        let longer = String(repeating: "a", count: 300)
        #expect(NearestKey.nearest(to: long, among: [longer]) == longer)
        let many = Array(repeating: "b", count: NearestKey.maximumCandidates) + ["long"]
        #expect(NearestKey.nearest(to: "lang", among: many) == nil)
        #expect(NearestKey.nearest(to: "lang", among: Array(many.dropFirst())) == "long")
    }

    @Test func `without candidates there is no nearest key`() {
        #expect(NearestKey.nearest(to: "a", among: []) == nil)
    }
}
