import ImageCodecs
import TestSupport
import Testing

@Suite("Pixels")
struct RasterTests {
    @Test(
        arguments: [
            // Fits as it is.
            (24, 16, 24, 16, nil), (24, 16, 100, 100, nil), (1, 1, 1, 1, nil),
            (24, 16, 12, 100, [12, 8]), (24, 16, 100, 8, [12, 8]), (24, 16, 10, 10, [10, 7]),
            (16, 24, 10, 10, [7, 10]), (1000, 1, 10, 10, [10, 1]), (1, 1000, 10, 10, [1, 10]),
            (1 << 31, 1, 1 << 24, 1, [1 << 24, 1]), (65535, 65535, .max, 1, [1, 1]),
        ] as [(Int, Int, Int, Int, [Int]?)])
    func `keep their proportions in a size within another`(
        width: Int, height: Int, maximumWidth: Int, maximumHeight: Int, expected: [Int]?
    ) {
        let size = Raster.size(of: width, height, within: maximumWidth, maximumHeight)
        #expect(size.map { [$0.width, $0.height] } == expected)
    }

    @Test func `are the mean of those that they cover`() throws {
        let raster = try Raster(width: 4, height: 2)
        let values: [UInt8] = [0, 100, 10, 20, 50, 50, 30, 40]
        for (index, value) in values.enumerated() {
            for channel in 0..<3 { raster.pixels[index * 4 + channel] = value }
            raster.pixels[index * 4 + 3] = 255
        }
        let half = try raster.scaled(to: 2, 1)
        #expect(half.pixel(0, 0) == [50, 50, 50, 255])
        #expect(half.pixel(1, 0) == [25, 25, 25, 255])
        // Each covers one pixel and a third of the next.
        let third = try raster.scaled(to: 3, 2)
        #expect(third.pixel(0, 0) == [25, 25, 25, 255])
        #expect(third.pixel(1, 0) == [55, 55, 55, 255])
        #expect(third.pixel(2, 1) == [38, 38, 38, 255])
    }

    @Test func `that are transparent lend no colour`() throws {
        let raster = try Raster(width: 2, height: 1)
        for (index, value) in ([255, 0, 0, 255, 0, 255, 0, 0] as [UInt8]).enumerated() {
            raster.pixels[index] = value
        }
        #expect(try raster.scaled(to: 1, 1).pixel(0, 0) == [255, 0, 0, 128])
        let clear = try Raster.filled(3, 3, [9, 9, 9, 0])
        #expect(try clear.scaled(to: 2, 2).pixel(1, 1) == [0, 0, 0, 0])
    }

    @Test func `of one colour stay so at every size`() throws {
        for color: [UInt8] in [[255, 255, 255, 255], [1, 2, 3, 255], [200, 100, 50, 128]] {
            let raster = try Raster.filled(13, 7, color)
            for width in 1...13 {
                for height in 1...7 {
                    let scaled = try raster.scaled(to: width, height)
                    #expect(scaled.pixel(0, 0) == color)
                    #expect(scaled.pixel(width - 1, height - 1) == color)
                }
            }
        }
    }

    /// Where the red, green, blue and white fields are after each of EXIF's rotations.
    @Test(
        arguments: [
            (1, "RGBW"), (2, "GRWB"), (3, "WBGR"), (4, "BWRG"), (5, "RBGW"), (6, "BRWG"),
            (7, "WGBR"), (8, "GWRB"),
        ])
    func `are turned as EXIF numbers it`(orientation: Int, fields: String) throws {
        let turned = try Raster.sample().oriented(orientation)
        let isTransposed = orientation >= 5
        #expect(turned.width == (isTransposed ? 16 : 24))
        #expect(turned.height == (isTransposed ? 24 : 16))
        let names: [[UInt8]: Character] = [
            [255, 0, 0, 255]: "R", [0, 255, 0, 255]: "G", [0, 0, 255, 255]: "B",
            [255, 255, 255, 255]: "W",
        ]
        let (right, bottom) = (turned.width - 1, turned.height - 1)
        let corners = [(0, 0), (right, 0), (0, bottom), (right, bottom)]
        #expect(String(corners.map { names[turned.pixel($0.0, $0.1)] ?? "?" }) == fields)
    }
}
