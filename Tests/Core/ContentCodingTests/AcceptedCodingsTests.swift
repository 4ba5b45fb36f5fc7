import Testing

@testable import ContentCoding

@Suite("Accept-Encoding, by RFC 9110, section 12.5.3")
struct AcceptedCodingsTests {
    private func codings(_ lines: [String]) -> AcceptedCodings {
        AcceptedCodings(lines.map { Array($0.utf8) })
    }

    /// Weights of identity, gzip, deflate, br and zstd.
    @Test(
        arguments: [
            ([], [1000, 1, 1, 1, 1]),
            ([""], [1, 0, 0, 0, 0]),
            (["gzip"], [1, 1000, 0, 0, 0]),
            (["GZip;Q=0.5"], [1, 500, 0, 0, 0]),
            (["x-gzip"], [1, 1000, 0, 0, 0]),
            (["gzip, deflate, br, zstd"], [1, 1000, 1000, 1000, 1000]),
            (["gzip", "br;q=0.25"], [1, 1000, 0, 250, 0]),
            (["*"], [1000, 1000, 1000, 1000, 1000]),
            (["*;q=0"], [0, 0, 0, 0, 0]),
            (["*;q=0, identity"], [1000, 0, 0, 0, 0]),
            (["gzip, *;q=0"], [0, 1000, 0, 0, 0]),
            (["identity;q=0, gzip"], [0, 1000, 0, 0, 0]),
            (["gzip;q=0, *;q=0.1"], [100, 0, 100, 100, 100]),
            (["gzip ; q=1.000 ,\tbr\t;\tq=0.001"], [1, 1000, 0, 1, 0]),
            (["gzip;q=0."], [1, 0, 0, 0, 0]),
            (["gzip;q=1."], [1, 1000, 0, 0, 0]),
            ([",, gzip ,,"], [1, 1000, 0, 0, 0]),
            (["gzip, gzip;q=0"], [1, 0, 0, 0, 0]),
            // What does not follow the grammar is ignored.
            (["gzip;q=1.1"], [1, 0, 0, 0, 0]),
            (["gzip;q=2"], [1, 0, 0, 0, 0]),
            (["gzip;q=0.1234"], [1, 0, 0, 0, 0]),
            (["gzip;q="], [1, 0, 0, 0, 0]),
            (["gzip;q"], [1, 0, 0, 0, 0]),
            (["gzip;"], [1, 0, 0, 0, 0]),
            (["gzip;q=-1"], [1, 0, 0, 0, 0]),
            (["gzip;q=0.x"], [1, 0, 0, 0, 0]),
            (["gzip;q=00"], [1, 0, 0, 0, 0]),
            (["gzip;q=0;q=1"], [1, 0, 0, 0, 0]),
            (["gzip br"], [1, 0, 0, 0, 0]),
            (["identity;q=x"], [1, 0, 0, 0, 0]),
            (["gz\u{FF}ip, br"], [1, 0, 0, 1000, 0]),
        ] as [([String], [Int])])
    func `weights are those that the lines give`(lines: [String], weights: [Int]) {
        let accepted = codings(lines)
        #expect(ContentCoding.allCases.map(accepted.weight) == weights)
        #expect(ContentCoding.allCases.map(accepted.accepts) == weights.map { $0 > 0 })
        #expect(accepted.isPresent == !lines.isEmpty)
    }

    @Test(
        arguments: [
            ([], [.gzip, .identity], .identity),
            (["gzip"], [.gzip, .identity], .gzip),
            (["gzip"], [.brotli, .identity], .identity),
            (["gzip, br"], [.brotli, .gzip], .brotli),
            (["gzip, br"], [.gzip, .brotli], .gzip),
            (["gzip, zstd"], [.brotli, .zstd, .gzip], .zstd),
            (["gzip, zstd, br;q=0.9"], [.brotli, .zstd, .gzip], .zstd),
            (["gzip;q=0.9, br"], [.gzip, .brotli], .brotli),
            (["gzip;q=0.5, identity"], [.gzip, .identity], .identity),
            (["identity;q=0"], [.gzip, .identity], nil),
            (["*;q=0"], [.gzip, .identity], nil),
            (["gzip"], [], nil),
        ] as [([String], [ContentCoding], ContentCoding?)])
    func `the best of what is at hand is chosen`(
        lines: [String], candidates: [ContentCoding], best: ContentCoding?
    ) {
        #expect(codings(lines).best(of: candidates) == best)
    }

    @Test(
        arguments: [
            ([], true), ([""], true), (["identity"], true), (["gzip;q=0"], true),
            (["identity;q=0.5, *;q=0"], true), (["gzip;q=0, dcz;q=0"], true),
            (["gzip"], false), (["br;q=0.1"], false), (["*"], false), (["zstd"], false),
            (["dcz"], false), (["zstd;q=0"], true),
            (["identity;q=0"], false), (["*;q=0"], false),
        ] as [([String], Bool)])
    func `a request for content without a coding accepts no other`(
        lines: [String], expected: Bool
    ) {
        #expect(codings(lines).isForIdentity == expected)
    }

    @Test(
        arguments: [
            ([], []), ([""], []), (["gzip"], [.gzip]), (["X-GZIP"], [.gzip]),
            (["deflate, br"], [.deflate, .brotli]), (["gzip", "br"], [.gzip, .brotli]),
            (["identity"], []), (["gzip, identity ,\t,br"], [.gzip, .brotli]),
            (["zstd"], [.zstd]), (["zstd, gzip"], [.zstd, .gzip]), (["ZSTD"], [.zstd]),
            (["dcz"], nil), (["zst"], nil), (["gzip, compress"], nil), (["gzip", "\u{FF}"], nil),
            (["gzip;q=1"], nil), (["gzip br"], nil), (["\"gzip\""], nil), (["*"], nil),
        ] as [([String], [ContentCoding]?)])
    func `Content-Encoding is a list over all lines, and unknown where a member is`(
        lines: [String], codings: [ContentCoding]?
    ) {
        #expect(ContentCoding.parse(lines.map { Array($0.utf8) }) == codings)
    }
}
