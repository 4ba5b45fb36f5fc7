import ImageCodecs
import TestSupport
import Testing

@Suite("Images")
struct DecodingTests {
    private static let limit = 1 << 20

    private func decoded(_ bytes: [UInt8]) throws -> Raster {
        let header = try ImageCodecs.inspect(bytes)
        let (raster, orientation) = try ImageCodecs.decode(
            bytes, header, maximumPixels: Self.limit)
        return try raster.oriented(orientation)
    }

    private func expectFields(of raster: Raster, _ alpha: UInt8 = 255) {
        #expect(raster.width == SampleImage.width && raster.height == SampleImage.height)
        for (x, y) in [(3, 3), (20, 3), (3, 12)] {
            #expect(isClose(raster.pixel(x, y), SampleImage.color(x, y) + [255]), "\(x), \(y)")
        }
        #expect(isClose(raster.pixel(20, 12), [255, 255, 255, alpha]))
    }

    @Test(
        arguments: [
            ("lossy.webp", ImageKind.webp, 1, 8), ("lossless-alpha.webp", .webp, 1, 8),
            ("lossy-alpha.webp", .webp, 1, 8), ("animated.webp", .webp, 2, 8),
            ("opaque.avif", .avif, 1, 8), ("alpha.avif", .avif, 1, 8),
            ("animated.avif", .avif, 2, 8), ("turned-10bit.avif", .avif, 1, 10),
            ("progressive.jpg", .jpeg, 1, 8), ("gray.jpg", .jpeg, 1, 8),
            ("cmyk.jpg", .jpeg, 1, 8),
        ])
    func `have their type, size, frames and depth`(
        name: String, kind: ImageKind, frames: Int, depth: Int
    ) throws {
        #expect(isAVIFLoaded)
        let header = try ImageCodecs.inspect(SampleFile.read(name))
        #expect(header.kind == kind)
        #expect(header.width == SampleImage.width && header.height == SampleImage.height)
        #expect(header.frames == frames)
        #expect(header.bitsPerSample == depth)
    }

    @Test(
        arguments: [
            ("lossy.webp", 255), ("lossless-alpha.webp", 128), ("lossy-alpha.webp", 128),
            ("animated.webp", 255), ("opaque.avif", 255), ("alpha.avif", 128),
            ("animated.avif", 255), ("progressive.jpg", 255), ("cmyk.jpg", 255),
        ] as [(String, UInt8)])
    func `are decoded`(name: String, alpha: UInt8) throws {
        #expect(isAVIFLoaded)
        expectFields(of: try decoded(SampleFile.read(name)), alpha)
    }

    @Test func `in PNG and GIF are decoded`() throws {
        expectFields(of: try decoded(SampleImage.png()))
        expectFields(of: try decoded(SampleImage.gif()))
        let transparent = try decoded(SampleImage.gif(transparent: 3))
        #expect(transparent.pixel(20, 12) == [0, 0, 0, 0])
        #expect(transparent.pixel(3, 12) == [0, 0, 255, 255])
    }

    @Test func `of AVIF are turned and mirrored as they ask`() throws {
        #expect(isAVIFLoaded)
        // 90 degrees counterclockwise: green moves to the top left.
        let turned = try decoded(SampleFile.read("turned-10bit.avif"))
        #expect(turned.width == 16 && turned.height == 24)
        #expect(isClose(turned.pixel(2, 2), [0, 255, 0, 255]))
        #expect(isClose(turned.pixel(2, 22), [255, 0, 0, 255]))
        let mirrored = try decoded(SampleFile.read("mirrored.avif"))
        #expect(isClose(mirrored.pixel(2, 2), [0, 255, 0, 255]))
        #expect(isClose(mirrored.pixel(22, 14), [0, 0, 255, 255]))
    }

    @Test func `of grey JPEG are grey`() throws {
        let raster = try decoded(SampleFile.read("gray.jpg"))
        #expect(isClose(raster.pixel(3, 3), [0, 0, 0, 255]))
        #expect(isClose(raster.pixel(20, 3), [255, 255, 255, 255]))
    }

    @Test(
        arguments: [
            // Grey of 1, 2, 4, 16 bits; a palette with transparency; grey with alpha; RGB of 16.
            (1, 0, [0b1000_0000], [], [255, 255, 255, 255]),
            (2, 0, [0b0100_0000], [], [85, 85, 85, 255]),
            (4, 0, [0x30], [], [51, 51, 51, 255]),
            (16, 0, [0x80, 0x80], [], [128, 128, 128, 255]),
            (
                8, 3, [1],
                SampleImage.chunk("PLTE", [1, 2, 3, 4, 5, 6]) + SampleImage.chunk("tRNS", [9, 8]),
                [4, 5, 6, 8]
            ),
            (8, 4, [7, 9], [], [7, 7, 7, 9]),
            (16, 2, [1, 1, 2, 2, 3, 3], [], [1, 2, 3, 255]),
            (8, 6, [1, 2, 3, 4], [], [1, 2, 3, 4]),
        ] as [(UInt8, UInt8, [UInt8], [UInt8], [UInt8])])
    func `of every form of PNG become RGBA of eight bits`(
        depth: UInt8, colorType: UInt8, row: [UInt8], before: [UInt8], pixel: [UInt8]
    ) throws {
        let file = SampleImage.png(
            width: 1, height: 1, depth: depth, colorType: colorType, rows: [row],
            before: [before])
        #expect(try decoded(file).pixel(0, 0) == pixel)
        #expect(try ImageCodecs.inspect(file).bitsPerSample == Int(depth))
    }

    @Test func `of GIF are decoded through all lengths of codes`() throws {
        var random = SeededRandom(seed: 7)
        let palette = (0..<256).map { [UInt8($0), UInt8(255 - $0), 7] }
        // Runs and noise: codes built from codes, and tables that are full.
        var indices: [UInt8] = []
        while indices.count < 200 * 100 {
            let value = UInt8(random.below(256))
            indices += [UInt8](repeating: value, count: random.chance(20) ? 300 : 1)
        }
        indices = Array(indices.prefix(200 * 100))
        let file = SampleImage.gif(width: 200, height: 100, palette: palette, pictures: [indices])
        let raster = try decoded(file)
        for (index, value) in indices.enumerated() {
            let pixel = Array(raster.pixels[(index * 4)..<(index * 4 + 4)])
            guard pixel == [value, 255 - value, 7, 255] else {
                Issue.record("pixel \(index) is \(pixel), of index \(value)")
                return
            }
        }
    }

    @Test func `of interlaced GIF come in order`() throws {
        let palette = (0..<16).map { [UInt8($0), 0, 0] }
        // Each row has its own number as colour; they are stored in passes.
        let order = [0, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15]
        let file = SampleImage.gif(
            width: 1, height: 16, palette: palette, pictures: [order.map { UInt8($0) }],
            isInterlaced: true)
        let raster = try decoded(file)
        #expect((0..<16).map { raster.pixel(0, $0)[0] } == (0..<16).map { UInt8($0) })
    }

    @Test func `count their frames`() throws {
        let picture: [UInt8] = [0, 1, 1, 0]
        let file = SampleImage.gif(
            width: 2, height: 2, palette: [[0, 0, 0], [255, 255, 255]],
            pictures: [picture, picture, picture])
        #expect(try ImageCodecs.inspect(file).frames == 3)
        let control = SampleImage.chunk("acTL", [0, 0, 0, 5, 0, 0, 0, 0])
        let animation = SampleImage.png(
            width: 1, height: 1, colorType: 0, rows: [[1]], before: [control])
        #expect(try ImageCodecs.inspect(animation).frames == 5)
    }

    @Test func `are read again as they were written`() throws {
        let raster = try Raster.sample()
        let png = try ImageCodecs.encodePNG(raster, maximumBytes: 1 << 20)
        expectFields(of: try decoded(png))
        // RGB, and RGBA if one pixel is not opaque.
        #expect(png[25] == 2)
        raster.pixels[(12 * 24 + 20) * 4 + 3] = 128
        let transparent = try ImageCodecs.encodePNG(raster, maximumBytes: 1 << 20)
        #expect(transparent[25] == 6)
        #expect(try decoded(transparent).pixel(20, 12) == [255, 255, 255, 128])
        let jpeg = try ImageCodecs.encodeJPEG(raster, maximumBytes: 1 << 20)
        expectFields(of: try decoded(jpeg))
    }

    @Test func `of JPEG have white where others are transparent`() throws {
        let raster = try Raster.filled(8, 8, [0, 0, 0, 0])
        let jpeg = try ImageCodecs.encodeJPEG(raster, maximumBytes: 1 << 20)
        #expect(isClose(try decoded(jpeg).pixel(4, 4), [255, 255, 255, 255]))
    }

    @Test func `keep a profile of RGB, and lose any other`() throws {
        for (space, isKept) in [("RGB ", true), ("GRAY", false)] {
            // No tags, followed by noise: libpng rejects a profile that is compressed into few
            // bytes.
            var random = SeededRandom(seed: 3)
            var profile = [UInt8](repeating: 0, count: 132) + random.bytes(124)
            profile.replaceSubrange(0..<4, with: [0, 0, 1, 0])
            profile.replaceSubrange(8..<12, with: [4, 0x20, 0, 0])
            profile.replaceSubrange(12..<16, with: "mntr".utf8)
            profile.replaceSubrange(16..<20, with: space.utf8)
            profile.replaceSubrange(20..<24, with: "XYZ ".utf8)
            profile.replaceSubrange(36..<40, with: "acsp".utf8)
            profile.replaceSubrange(
                68..<80, with: [0, 0, 0xF6, 0xD6, 0, 1, 0, 0, 0, 0, 0xD3, 0x2D])
            let raster = try Raster.sample()
            raster.profile = profile
            let jpeg = try ImageCodecs.encodeJPEG(raster, maximumBytes: 1 << 20)
            #expect(try decoded(jpeg).profile == (isKept ? profile : []))
            guard isKept else { continue }
            let png = try ImageCodecs.encodePNG(raster, maximumBytes: 1 << 20)
            #expect(try decoded(png).profile == profile)
        }
    }

    @Test func `are written within a size`() throws {
        let raster = try Raster.sample()
        for limit in [0, 1, 50] {
            #expect(throws: ImageCodecError.resultTooLarge(limit: limit)) {
                try ImageCodecs.encodePNG(raster, maximumBytes: limit)
            }
            #expect(throws: ImageCodecError.resultTooLarge(limit: limit)) {
                try ImageCodecs.encodeJPEG(raster, maximumBytes: limit)
            }
        }
    }
}
