import Testing

@testable import ContentCoding

@Suite("Content codings, undone while the content arrives")
struct StreamDecoderTests {
    private let text = Array(String(repeating: "What comes in goes out. ", count: 40).utf8)

    private func encoded(_ content: [UInt8], _ codings: [ContentCoding]) throws -> [UInt8] {
        try codings.reduce(content) { try ContentCodings.encode($0, as: $1) }
    }

    /// The output for content that arrives in parts of this many bytes.
    private func decode(
        _ content: [UInt8], _ codings: [ContentCoding], partBytes: Int
    ) -> Result<[UInt8], ContentCodingError> {
        do throws(ContentCodingError) {
            var decoder = try StreamDecoder(codings)
            var (output, rest) = ([UInt8](), content[...])
            while true {
                while let block = try decoder.next() {
                    guard !block.isEmpty, block.count <= DecodingBlock.size else {
                        Issue.record("a block of \(block.count) bytes")
                        return .success(output)
                    }
                    output += block
                }
                if rest.isEmpty { break }
                decoder.feed(Array(rest.prefix(partBytes)))
                rest = rest.dropFirst(partBytes)
            }
            try decoder.finish()
            return .success(output)
        } catch {
            return .failure(error)
        }
    }

    @Test(
        arguments: [
            [.gzip], [.deflate], [.brotli], [.zstd], [], [.gzip, .brotli], [.deflate, .gzip],
            [.zstd, .zstd],
        ] as [[ContentCoding]], [0, 1, 960, 65_536, 200_000])
    func `what was encoded comes out, however it arrives`(
        codings: [ContentCoding], count: Int
    ) throws {
        let content = (0..<count).map { UInt8(truncatingIfNeeded: $0 * $0 >> 7) }
        let encoded = try encoded(content, codings)
        for partBytes in count > 1000 ? [977, 1 << 20] : [1, 2, 3, 1 << 20] {
            let limit = codings.isEmpty ? min(partBytes, DecodingBlock.size) : partBytes
            #expect(decode(encoded, codings, partBytes: limit) == .success(content))
        }
    }

    @Test func `content without a byte is empty under every coding`() {
        for coding in ContentCoding.allCases {
            #expect(decode([], [coding], partBytes: 1) == .success([]))
        }
    }

    @Test func `bare deflate is recognized, byte by byte`() throws {
        let bare = Array(try encoded(text, [.deflate]).dropFirst(2).dropLast(4))
        #expect(decode(bare, [.deflate], partBytes: 1) == .success(text))
    }

    @Test func `all members of a gzip file come out`() throws {
        let file = try encoded(text, [.gzip]) + encoded([], [.gzip]) + encoded(text, [.gzip])
        for partBytes in [1, 7, 1 << 20] {
            #expect(decode(file, [.gzip], partBytes: partBytes) == .success(text + text))
        }
    }

    @Test(arguments: [ContentCoding.gzip, .deflate, .brotli, .zstd])
    func `what is cut off, or followed by something, is an error`(coding: ContentCoding) throws {
        let whole = try encoded(text, [coding])
        for count in 1..<whole.count {
            let result = decode(Array(whole.prefix(count)), [coding], partBytes: 5)
            #expect(result == .failure(.truncated(coding, offset: nil)))
        }
        let more = decode(whole + [coding == .gzip ? 1 : 0], [coding], partBytes: 1)
        #expect(more == .failure(.trailingData(coding, offset: nil)))
    }

    @Test(arguments: [1, 2, 7, 1 << 20])
    func `zero bytes behind a gzip file are passed over, and nothing else is`(
        partBytes: Int
    ) throws {
        let file = try encoded(text, [.gzip])
        for count in [1, 2, 512] {
            let padded = file + [UInt8](repeating: 0, count: count)
            #expect(decode(padded, [.gzip], partBytes: partBytes) == .success(text))
            for more in [[1], file] {
                #expect(
                    decode(padded + more, [.gzip], partBytes: partBytes)
                        == .failure(.trailingData(.gzip, offset: nil)))
            }
        }
    }

    @Test func `what is broken is an error`() throws {
        var gzip = try encoded(text, [.gzip])
        gzip[gzip.count - 8] ^= 1
        for (content, coding) in [
            (gzip, ContentCoding.gzip), (text, .gzip), ([0x07, 0x07, 0x07], .deflate),
            ([0x11, 0, 0, 0], .brotli), (text, .zstd),
        ] {
            guard case .failure(.corrupt(coding, nil, _)) = decode(content, [coding], partBytes: 4)
            else {
                Issue.record("\(coding) was decoded")
                continue
            }
        }
        #expect(
            decode(text, [.gzip, .gzip, .gzip], partBytes: 9)
                == .failure(.tooManyCodings(maximum: 2)))
    }

    @Test func `a small input that becomes large is decoded block by block`() throws {
        let content = [UInt8](repeating: 0, count: 64 << 20)
        for coding in [ContentCoding.gzip, .brotli, .zstd] {
            var decoder = try StreamDecoder([coding])
            decoder.feed(try encoded(content, [coding]))
            let block = try #require(try decoder.next())
            #expect(block.count <= DecodingBlock.size)
        }
    }
}
