import CLinux
import ImageCodecs
import TestSupport
import Testing

/// The files next to the tests: 24 × 16 pixels in four fields (red, green, blue, white), made with
/// the tools of libwebp, libavif and libjpeg.
enum SampleFile {
    static func read(_ name: String) throws -> [UInt8] {
        try Checkout.bytes("Tests/Platform/ImageCodecsTests/Images/\(name)")
    }
}

/// Loads the AVIF decoder, once for all tests.
let isAVIFLoaded = ImageCodecs.load()

extension Raster {
    /// The four bytes of a pixel.
    func pixel(_ x: Int, _ y: Int) -> [UInt8] { Array(pixels[((y * width + x) * 4)...].prefix(4)) }

    /// An image of this size in a single colour.
    static func filled(_ width: Int, _ height: Int, _ color: [UInt8]) throws -> Raster {
        let raster = try Raster(width: width, height: height)
        for index in raster.pixels.indices { raster.pixels[index] = color[index % 4] }
        return raster
    }

    /// The four fields.
    static func sample() throws -> Raster {
        let raster = try Raster(width: SampleImage.width, height: SampleImage.height)
        for y in 0..<raster.height {
            for x in 0..<raster.width {
                for (channel, value) in (SampleImage.color(x, y) + [255]).enumerated() {
                    raster.pixels[(y * raster.width + x) * 4 + channel] = value
                }
            }
        }
        return raster
    }
}

/// Whether each of four bytes is as close as lossy compression keeps it.
func isClose(_ pixel: [UInt8], _ wanted: [UInt8], within distance: Int = 12) -> Bool {
    pixel.count == wanted.count
        && zip(pixel, wanted).allSatisfy { abs(Int($0) - Int($1)) <= distance }
}
