/// The chunks of a PNG file (ISO/IEC 15948): the contents of IHDR and acTL, and that IEND is
/// present.
enum PNGChunks {
    static func inspect(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        guard let length = bytes.big(4, at: 8), let width = bytes.big(4, at: 16),
            let height = bytes.big(4, at: 20), let depth = bytes.big(1, at: 24)
        else { throw .truncated(.png) }
        guard length == 13, bytes.holds("IHDR".utf8, at: 12), (1...0x7FFF_FFFF).contains(width),
            (1...0x7FFF_FFFF).contains(height), [1, 2, 4, 8, 16].contains(depth)
        else { throw .damaged(.png) }
        var header = ImageHeader(kind: .png, width: width, height: height)
        header.bitsPerSample = depth
        header.frames = try frames(bytes)
        return header
    }

    /// Walks over the chunks to the last one, and notes the number of frames on the way, which an
    /// animation gives before the first data.
    private static func frames(_ bytes: [UInt8]) throws(ImageCodecError) -> Int {
        var offset = 8
        var frames = 1
        var hasData = false
        while let length = bytes.big(4, at: offset) {
            guard length <= 0x7FFF_FFFF else { throw .damaged(.png) }
            guard bytes.count - offset >= 12 + length else { throw .truncated(.png) }
            if bytes.holds("IEND".utf8, at: offset + 4) { return frames }
            if bytes.holds("IDAT".utf8, at: offset + 4) { hasData = true }
            if !hasData, length == 8, bytes.holds("acTL".utf8, at: offset + 4) {
                frames = max(1, bytes.big(4, at: offset + 8) ?? 1)
            }
            offset += 12 + length
        }
        throw .truncated(.png)
    }
}
