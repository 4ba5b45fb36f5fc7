import HTTPCore
import TestSupport
import Testing

@testable import HTTP2

/// An encoder, and a decoder that reads what it writes.
struct EncoderPair: ~Copyable {
    var encoder = HeaderEncoder()
    var reference = ReferenceDecoder()
    /// The last block.
    private(set) var block: [UInt8] = []

    init() {}

    /// Encodes lines as trailers, which have no pseudo-fields.
    mutating func fields(
        _ lines: [String], sensitive: SensitiveNames = SensitiveNames()
    ) throws -> [DecodedField] {
        let bytes = Array(lines.map { $0 + "\r\n" }.joined().utf8)
        try write { encoder, writer in
            encoder.encodeTrailers(lines: bytes.span, sensitive: sensitive, into: &writer)
        }
        return try reference.decode(block)
    }

    /// Writes a block into memory of exactly the size that it may need.
    mutating func write(
        _ body: (inout HeaderEncoder, inout HeadWriter) -> Void
    ) throws {
        var memory = [UInt8](repeating: 0xEE, count: 200_000)
        var count = 0
        memory.withUnsafeMutableBytes {
            var writer = HeadWriter($0)
            body(&encoder, &writer)
            #expect(!writer.overflowed)
            count = writer.count
        }
        block = Array(memory[..<count])
    }
}

@Suite("Header blocks are encoded")
struct HeaderEncoderTests {
    @Test func `with names in small letters, and values without whitespace around them`() throws {
        var pair = EncoderPair()
        let read = try pair.fields([
            "Server:  x y\t", "X-CamelCase:z", "ETag: \"a\"", "Empty:", "Blank:   ", "a: b: c",
        ])
        #expect(
            read == [
                DecodedField("server", "x y"), DecodedField("x-camelcase", "z"),
                DecodedField("etag", "\"a\""), DecodedField("empty", ""),
                DecodedField("blank", ""), DecodedField("a", "b: c"),
            ])
    }

    @Test func `with one byte for each field that came before, in any order`() throws {
        var pair = EncoderPair()
        let lines = ["Server: x", "Via: 1.1 y", "Content-Type: text/html", "X-A: 1", "X-B: 2"]
        let first = try pair.fields(lines)
        #expect(first.count == lines.count)
        #expect(pair.block.count > lines.count)
        for order in permutations(lines) {
            let read = try pair.fields(order)
            #expect(read.map(\.description).sorted() == first.map(\.description).sorted())
            #expect(pair.block.count == lines.count)
        }
    }

    /// A value that differs in each message, between fields that do not.
    @Test func `with values that never repeat left out of a table that is half full`() throws {
        var pair = EncoderPair()
        let constant = (0..<20).map { "x-constant-\($0): \($0)" }
        for round in 0..<400 {
            let lines = constant[..<10] + ["x-id: \(round * 7919)"] + constant[10...]
            #expect(try pair.fields(Array(lines)).count == 21)
            // The constant fields stay: one byte for each, and two where an index needs it.
            if round > 0 { #expect(pair.block.count <= 20 * 2 + 12) }
        }
        // One that comes again is added after all.
        let again = constant + ["x-id: again-and-again"]
        for _ in 0..<2 { _ = try pair.fields(again) }
        #expect(try pair.fields(again).count == 21)
        #expect(pair.block.count <= 21 * 2)
    }

    @Test(arguments: ["Authorization", "cookie", "Set-Cookie", "PROXY-AUTHORIZATION"])
    func `with secrets as literals that are never indexed`(name: String) throws {
        var pair = EncoderPair()
        for _ in 0..<3 {
            let read = try pair.fields(["\(name): secret secret secret"])
            let expected = DecodedField(
                name.lowercased(), "secret secret secret", isSensitive: true)
            #expect(read == [expected])
            #expect(pair.reference.table.isEmpty)
        }
    }

    @Test func `with what was received as never indexed in the same way`() throws {
        var pair = EncoderPair()
        var sensitive = SensitiveNames()
        Array("x-api-key".utf8).withUnsafeBytes { sensitive.insert($0) }
        let lines = ["A: b", "X-API-Key: 12345", "C: d"]
        // It is in the table from another message, with the same value.
        for _ in 0..<2 { #expect(try pair.fields(lines).allSatisfy { !$0.isSensitive }) }
        for _ in 0..<2 {
            let read = try pair.fields(lines, sensitive: sensitive)
            #expect(read.map(\.isSensitive) == [false, true, false])
        }
        #expect(try pair.fields(lines).allSatisfy { !$0.isSensitive })
    }

    @Test func `without what belongs to a connection`() throws {
        var pair = EncoderPair()
        let dropped = [
            "Connection: close", "keep-alive: 1", "Proxy-Connection: x", "Transfer-Encoding: x",
            "Upgrade: h2c", "HTTP2-Settings: x", "TE: gzip", "TE: trailers",
        ]
        for lines in [dropped, ["A: b"] + dropped + ["Host: c", "te2: d"]] {
            for _ in 0..<2 {
                let read = try pair.fields(lines)
                let kept = ["a: b", "host: c", "te2: d"]
                #expect(read.map(\.description) == (lines.count == dropped.count ? [] : kept))
            }
        }
    }

    @Test func `with the table size that the peer allows, and each smaller one before`() throws {
        var pair = EncoderPair()
        let lines = ["Server: x", "X-A: 1"]
        _ = try pair.fields(lines)
        // Without a change nothing is said, nor for a size that is not used.
        pair.encoder.peerTableLimit(4096)
        pair.encoder.peerTableLimit(1 << 30)
        _ = try pair.fields(lines)
        #expect(pair.block.count == 2)
        // The smallest size, and the last one (RFC 7541 §4.2).
        pair.encoder.peerTableLimit(100)
        pair.encoder.peerTableLimit(40)
        pair.encoder.peerTableLimit(70)
        pair.reference.largestLimit = 70
        _ = try pair.fields(lines)
        #expect(pair.block.starts(with: [0x3F, 9, 0x3F, 39]))
        #expect(pair.reference.limit == 70)
        pair.encoder.peerTableLimit(0)
        pair.reference.largestLimit = 0
        for _ in 0..<3 { #expect(try pair.fields(lines).count == 2) }
        #expect(pair.reference.table.isEmpty)
        pair.encoder.peerTableLimit(4096)
        pair.reference.largestLimit = 4096
        for _ in 0..<3 { #expect(try pair.fields(lines).count == 2) }
        #expect(pair.block.count == 2)
    }

    @Test func `with an empty table, after it was given up`() throws {
        var pair = EncoderPair()
        let lines = ["Server: x", "X-A: 1"]
        _ = try pair.fields(lines)
        let first = pair.block
        pair.encoder.forget()
        #expect(try pair.fields(lines).count == 2)
        // The sizes 0 and 4,096, and all fields as in the beginning.
        #expect(pair.block == [0x20, 0x3F, 0xE1, 0x1F] + first)
        _ = try pair.fields(lines)
        #expect(pair.block.count == 2)
        // One that the peer has made smaller meanwhile is still said to be.
        pair.encoder.forget()
        pair.encoder.peerTableLimit(70)
        pair.reference.largestLimit = 70
        _ = try pair.fields(lines)
        #expect(pair.block.starts(with: [0x20, 0x3F, 39]))
        #expect(pair.reference.limit == 70)
    }

    @Test func `not at all, where there is too little room`() throws {
        var pair = EncoderPair()
        let lines = Array("Server: x\r\n".utf8)
        let needed = HeaderEncoder.bound(lines.count)
        pair.encoder.peerTableLimit(0)
        for size in [0, 1, needed - 1] {
            var memory = [UInt8](repeating: 0xEE, count: size)
            memory.withUnsafeMutableBytes {
                var writer = HeadWriter($0)
                pair.encoder.encodeTrailers(lines: lines.span, into: &writer)
                #expect(writer.overflowed)
                #expect(writer.count == 0)
            }
            #expect(memory.allSatisfy { $0 == 0xEE })
        }
        // Nothing of it was taken as sent: the table size comes now.
        #expect(try pair.fields(["Server: x"]) == [DecodedField("server", "x")])
        #expect(pair.block.first == 0x20)
    }

    /// Lines of every kind and length, with all limits, in memory of exactly the promised size.
    @Test(arguments: UInt64(0)..<4)
    func `so that a decoder reads the same`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var pair = EncoderPair()
        let names = ["Server", "server", "x-a", "X-A", "Cookie", "ETag", "content-type", "n"]
        for _ in 0..<300 {
            var lines: [UInt8] = []
            var expected: [DecodedField] = []
            for _ in 0..<random.below(15) {
                var name = random.pick(names)
                if random.chance(3) { name += String(repeating: "q", count: random.below(400)) }
                let count = random.chance(4) ? random.below(4000) : random.below(40)
                let few = random.chance(70)
                let value = (0..<(few ? 1 : count)).map { _ in
                    UInt8(
                        truncatingIfNeeded: few ? 0x30 + random.below(10) : 0x21 + random.below(94))
                }
                lines += Array((name + ": ").utf8) + value + [0x0D, 0x0A]
                expected.append(
                    DecodedField(
                        name: Array(name.lowercased().utf8), value: value,
                        isSensitive: name == "Cookie"))
            }
            if random.chance(5) {
                let limit = random.pick([0, 64, 300, 1000, 4096, 10_000])
                pair.encoder.peerTableLimit(limit)
                pair.reference.largestLimit = limit
            }
            if random.chance(5) { pair.encoder.forget() }
            let bound = HeaderEncoder.bound(lines.count)
            var memory = [UInt8](repeating: 0xEE, count: bound + 32)
            var count = 0
            memory.withUnsafeMutableBytes {
                var writer = HeadWriter(UnsafeMutableRawBufferPointer(rebasing: $0[..<bound]))
                pair.encoder.encodeTrailers(lines: lines.span, into: &writer)
                #expect(!writer.overflowed)
                count = writer.count
            }
            #expect(memory[bound...].allSatisfy { $0 == 0xEE })
            let read = try pair.reference.decode(Array(memory[..<count]))
            try #require(read == expected)
            try #require(pair.reference.size == pair.encoder.table.size)
        }
    }
}
