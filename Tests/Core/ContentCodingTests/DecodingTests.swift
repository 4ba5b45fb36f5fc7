import Testing

@testable import ContentCoding

@Suite("Content codings, undone and applied")
struct DecodingTests {
    private let text = Array(String(repeating: "What comes in goes out. ", count: 40).utf8)

    private func encoded(_ content: [UInt8], _ codings: ContentCoding...) throws -> [UInt8] {
        try codings.reduce(content) { try ContentCodings.encode($0, as: $1) }
    }

    private func decode(
        _ content: [UInt8], _ codings: ContentCoding..., maximum: Int = 1 << 20
    ) -> Result<[UInt8], ContentCodingError> {
        do throws(ContentCodingError) {
            return .success(
                try ContentCodings.decode(content, codings: codings, maximum: maximum))
        } catch {
            return .failure(error)
        }
    }

    /// Raw deflate: the data without the two bytes before it and the four after it.
    private func bare(_ content: [UInt8]) throws -> [UInt8] {
        Array(try encoded(content, .deflate).dropFirst(2).dropLast(4))
    }

    @Test(arguments: [ContentCoding.gzip, .deflate, .zstd])
    func `interludes change nothing of what is encoded and decoded`(coding: ContentCoding) throws {
        let content = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 7) }
        var runs = 0
        let encoded = try ContentCodings.encode(content, as: coding) { runs += 1 }
        #expect(try encoded == self.encoded(content, coding))
        #expect(runs > 1)
        runs = 0
        let decoded = try ContentCodings.decode(
            encoded, codings: [coding], maximum: 300_000
        ) { runs += 1 }
        #expect(decoded == content)
        #expect(runs > 3)
    }

    @Test(arguments: ContentCoding.allCases, [0, 1, 960, 65_535, 65_536, 65_537, 200_000])
    func `what was encoded is decoded`(coding: ContentCoding, count: Int) throws {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 * $0 >> 7) }
        let encoded = try encoded(content, coding)
        #expect(try encoded == self.encoded(content, coding))
        #expect(decode(encoded, coding, maximum: count) == .success(content))
        guard count > 0 else { return }
        #expect(
            decode(encoded, coding, maximum: count - 1)
                == .failure(.tooLarge(maximum: count - 1)))
    }

    /// Written by Python's gzip (also with a name), its zlib, raw deflate, Node, and zstd (from a
    /// pipe, and with a size and without a checksum from a file).
    @Test(
        arguments: [
            (.gzip, "1f8b0800000000000203" + "cb48cdc9c90700" + "86a6103605000000"),
            (.gzip, "1f8b0808000000000003666f6f00" + "cb48cdc9c90700" + "86a6103605000000"),
            (.deflate, "789ccb48cdc9c90700062c0215"),
            (.deflate, "cb48cdc9c90700"),
            (.brotli, "0b028068656c6c6f03"),
            (.zstd, "28b52ffd0458290000" + "68656c6c6f" + "a36d9f88"),
            (.zstd, "28b52ffd2005290000" + "68656c6c6f"),
        ] as [(ContentCoding, String)])
    func `what other programs wrote is decoded`(coding: ContentCoding, hex: String) throws {
        #expect(decode(try bytes(hex), coding) == .success(Array("hello".utf8)))
    }

    private func bytes(_ hex: String) throws -> [UInt8] {
        let digits = hex.compactMap(\.hexDigitValue)
        try #require(digits.count % 2 == 0)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }

    @Test func `gzip has neither time nor name, so that the same content has the same bytes`()
        throws
    {
        #expect(
            try encoded(text, .gzip).prefix(10) == [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3])
    }

    @Test func `several members of gzip are one content`() throws {
        let members = try encoded(text, .gzip) + encoded([], .gzip) + encoded([1, 2], .gzip)
        #expect(decode(members, .gzip) == .success(text + [1, 2]))
        #expect(
            decode(members, .gzip, maximum: text.count + 1)
                == .failure(.tooLarge(maximum: text.count + 1)))
    }

    @Test func `deflate is taken with and without the header of zlib`() throws {
        #expect(decode(try bare(text), .deflate) == .success(text))
        #expect(decode(try bare([]), .deflate) == .success([]))
    }

    @Test(arguments: ContentCoding.allCases)
    func `content without a byte is empty under every coding`(coding: ContentCoding) {
        #expect(decode([], coding, maximum: 0) == .success([]))
    }

    @Test func `identity is the content itself, and held to the maximum`() {
        #expect(decode([1, 2, 3], .identity, maximum: 3) == .success([1, 2, 3]))
        #expect(decode([1, 2, 3], maximum: 2) == .failure(.tooLarge(maximum: 2)))
        #expect(decode([1, 2, 3], .identity, .identity, .identity) == .success([1, 2, 3]))
    }

    @Test func `two codings are undone from the last one`() throws {
        let both = try encoded(text, .gzip, .brotli)
        #expect(decode(both, .gzip, .brotli) == .success(text))
        #expect(decode(both, .gzip, .identity, .brotli, maximum: text.count) == .success(text))
        #expect(
            decode(both, .brotli, .gzip)
                == .failure(.corrupt(.gzip, offset: 2, "incorrect header check")))
        #expect(decode(both, .gzip, .gzip, .brotli) == .failure(.tooManyCodings(maximum: 2)))
    }

    @Test func `between two codings what cannot be compressed may be larger than the content`()
        throws
    {
        var random = SplitMix(state: 7)
        let noise = (0..<20_000).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let both = try encoded(noise, .gzip, .gzip)
        #expect(decode(both, .gzip, .gzip, maximum: noise.count) == .success(noise))
    }

    @Test func `an error within another coding has no place in the content`() throws {
        let inner = Array(try encoded(text, .gzip).dropLast())
        #expect(
            decode(try encoded(inner, .brotli), .gzip, .brotli)
                == .failure(.truncated(.gzip, offset: nil)))
        let trailing = try encoded(text, .brotli) + [0]
        #expect(
            decode(try encoded(trailing, .gzip), .brotli, .gzip)
                == .failure(.trailingData(.brotli, offset: nil)))
        #expect(
            decode(try encoded([1, 2, 3], .gzip), .gzip, .gzip)
                == .failure(.corrupt(.gzip, offset: nil, "incorrect header check")))
        let large = try encoded(text, .gzip, .gzip)
        #expect(decode(large, .gzip, .gzip, maximum: 9) == .failure(.tooLarge(maximum: 9)))
    }

    @Test(arguments: [ContentCoding.gzip, .deflate, .brotli, .zstd])
    func `content that is cut off anywhere is refused, with its end as the place`(
        coding: ContentCoding
    ) throws {
        let encoded = try encoded(text, coding)
        for count in 1..<encoded.count {
            #expect(
                decode(Array(encoded.prefix(count)), coding)
                    == .failure(.truncated(coding, offset: count)), "\(count) bytes")
        }
    }

    @Test(arguments: [ContentCoding.gzip, .deflate, .brotli, .zstd])
    func `what follows the end is refused, with its place`(coding: ContentCoding) throws {
        let encoded = try encoded(text, coding)
        var others: [[UInt8]] = [[0x1F], [0x1F, 0x8C], [0, 1], Array("\r\n".utf8)]
        if coding != .gzip { others.append([0]) }
        for trailing in others {
            #expect(
                decode(encoded + trailing, coding)
                    == .failure(.trailingData(coding, offset: encoded.count)))
        }
    }

    @Test func `zero bytes behind a gzip file are passed over, and nothing else is`() throws {
        let file = try encoded(text, .gzip)
        for count in [1, 2, 17, 512, 70_000] {
            let padded = file + [UInt8](repeating: 0, count: count)
            #expect(decode(padded, .gzip) == .success(text))
            // Nor another file: gzip ends at the first zero byte.
            for more in [[1], file] {
                #expect(
                    decode(padded + more, .gzip)
                        == .failure(.trailingData(.gzip, offset: file.count)))
            }
        }
    }

    @Test func `checksums are verified`() throws {
        var gzip = try encoded(text, .gzip)
        gzip[gzip.count - 8] ^= 1
        #expect(
            decode(gzip, .gzip)
                == .failure(.corrupt(.gzip, offset: gzip.count - 4, "incorrect data check")))
        gzip[gzip.count - 8] ^= 1
        gzip[gzip.count - 4] ^= 1
        #expect(
            decode(gzip, .gzip)
                == .failure(.corrupt(.gzip, offset: gzip.count, "incorrect length check")))
        var zlib = try encoded(text, .deflate)
        zlib[zlib.count - 1] ^= 1
        #expect(
            decode(zlib, .deflate)
                == .failure(.corrupt(.deflate, offset: zlib.count, "incorrect data check")))
    }

    @Test func `a preset dictionary is refused`() {
        #expect(
            decode([0x78, 0xBB, 0, 0, 0, 1, 3, 0], .deflate)
                == .failure(.corrupt(.deflate, offset: 6, "it needs a dictionary")))
    }

    @Test(arguments: [ContentCoding.gzip, .deflate, .brotli, .zstd])
    func `a bomb is refused before it takes more than the maximum and a block`(
        coding: ContentCoding
    ) throws {
        let bomb = try encoded([UInt8](repeating: 0, count: 64 << 20), coding)
        #expect(bomb.count < 100_000)
        #expect(decode(bomb, coding, maximum: 1 << 20) == .failure(.tooLarge(maximum: 1 << 20)))
        let twice = try encoded(bomb, coding)
        #expect(
            decode(twice, coding, coding, maximum: 1 << 20)
                == .failure(.tooLarge(maximum: 1 << 20)))
    }

    @Test func `room is never made beyond the maximum`() throws {
        let maximum = 300_000
        for expected in [-1, 0, 5, maximum, Int.max] {
            var output = BoundedOutput(maximum: maximum, expected: expected)
            let block = [UInt8](repeating: 1, count: 1 << 16)
            let fault = #expect(throws: ContentCodingError.self) {
                while true {
                    try block.span.withUnsafeBytes { (bytes) throws(ContentCodingError) in
                        try output.append(bytes)
                    }
                }
            }
            #expect(fault == .tooLarge(maximum: maximum))
            #expect(output.bytes.count == 4 << 16)
            #expect(output.bytes.capacity <= maximum + 4096)
        }
    }

    @Test func `errors state what and where`() {
        #expect(
            ContentCodingError.truncated(.gzip, offset: 5).detail
                == "the gzip content is truncated")
        #expect(
            ContentCodingError.corrupt(.brotli, offset: nil, "CL_SPACE").detail
                == "the br content is corrupt: CL_SPACE")
        #expect(ContentCodingError.truncated(.gzip, offset: 5).offset == 5)
        #expect(ContentCodingError.trailingData(.gzip, offset: 6).offset == 6)
        #expect(ContentCodingError.tooLarge(maximum: 5).offset == nil)
        #expect(ContentCodingError.tooLarge(maximum: 5).detail.contains("5 bytes"))
        #expect(ContentCodingError.tooManyCodings(maximum: 2).detail.contains("2 nested codings"))
        #expect(ContentCodingError.outOfMemory.detail == "there is no memory")
    }

    /// With gzip and zlib every change is either detected or makes no difference.
    @Test(arguments: [ContentCoding.gzip, .deflate, .brotli, .zstd], [1, 2, 3] as [UInt64])
    func `mutated content gives a value or an error, and never another value under a checksum`(
        coding: ContentCoding, seed: UInt64
    ) throws {
        var random = SplitMix(state: seed)
        for round in 0..<300 {
            let content = (0..<random.below(3000)).map { _ in
                UInt8(truncatingIfNeeded: random.next() & random.next() & 0x3F)
            }
            var encoded = try encoded(content, coding)
            #expect(decode(encoded, coding) == .success(content), "seed \(seed), \(round)")
            for _ in 0...random.below(3) {
                let index = random.below(encoded.count)
                switch random.below(3) {
                case 0: encoded[index] ^= 1 << UInt8(random.below(8))
                case 1: encoded.remove(at: index)
                default: encoded.insert(UInt8(truncatingIfNeeded: random.next()), at: index)
                }
                if encoded.isEmpty { break }
            }
            guard case .success(let decoded) = decode(encoded, coding, maximum: 10_000) else {
                continue
            }
            #expect(decoded.count <= 10_000)
            // Mutated deflate may be raw deflate, which has no checksum.
            guard coding == .gzip, !encoded.isEmpty else { continue }
            #expect(decoded == content, "seed \(seed), round \(round)")
        }
    }
}

/// Pseudorandom numbers from a seed (SplitMix64).
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// From 0 up to `bound`; 0 unless that is positive.
    mutating func below(_ bound: Int) -> Int {
        bound > 0 ? Int(next() % UInt64(bound)) : 0
    }
}
