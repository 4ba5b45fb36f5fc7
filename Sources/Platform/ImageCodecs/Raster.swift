import CImages

/// Pixels in memory, four bytes each: red, green, blue and alpha (not premultiplied), from the top
/// left, rows without padding. The owner may write to it until it is shared.
package final class Raster {
    package let width: Int
    package let height: Int
    /// `width` × `height` × 4 bytes.
    package let pixels: UnsafeMutableBufferPointer<UInt8>
    /// The start of the pixels.
    let memory: UnsafeMutablePointer<UInt8>
    /// The ICC profile of its RGB colours; empty for none.
    package var profile: [UInt8] = []

    /// Transparent pixels. Throws ``ImageCodecError/noMemory``.
    package init(width: Int, height: Int) throws(ImageCodecError) {
        guard let columns = UInt32(exactly: width), let rows = UInt32(exactly: height),
            let memory = image_allocate(columns, rows)
        else { throw .noMemory }
        self.width = width
        self.height = height
        self.memory = memory
        pixels = UnsafeMutableBufferPointer(start: memory, count: width * height * 4)
    }

    /// Takes ownership of what a C function has decoded.
    init?(taking decoded: image_pixels) {
        guard let memory = decoded.rgba else { return nil }
        width = Int(decoded.width)
        height = Int(decoded.height)
        self.memory = memory
        pixels = UnsafeMutableBufferPointer(start: memory, count: width * height * 4)
        if let bytes = decoded.profile {
            let all = UnsafeBufferPointer(start: bytes, count: decoded.profile_length)
            // The colour space of the data (ICC.1, 7.2.6): grey and CMYK have been converted to RGB
            // here.
            if all.count >= 20, all[16..<20].elementsEqual("RGB ".utf8) { profile = Array(all) }
            image_free(bytes)
        }
    }

    deinit { image_free(memory) }

    /// Whether any pixel is not opaque.
    package var hasTransparency: Bool {
        var index = 3
        while index < pixels.count {
            if pixels[index] != 255 { return true }
            index += 4
        }
        return false
    }
}
