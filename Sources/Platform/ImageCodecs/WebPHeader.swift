/// The chunks of a WebP file (RFC 9649): the canvas, the frames, and that the file is complete.
enum WebPChunks {
    static func inspect(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        guard let size = bytes.little(4, at: 4), let first = bytes.little(4, at: 16) else {
            throw .truncated(.webp)
        }
        guard size >= 12 else { throw .damaged(.webp) }
        guard bytes.count - 8 >= size, bytes.count - 20 >= first else { throw .truncated(.webp) }
        if bytes.holds("VP8X".utf8, at: 12) { return try extended(bytes, end: 8 + size) }
        if bytes.holds("VP8 ".utf8, at: 12) { return try lossy(bytes) }
        if bytes.holds("VP8L".utf8, at: 12) { return try lossless(bytes) }
        throw .damaged(.webp)
    }

    private static func lossy(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        guard bytes.holds([0x9D, 0x01, 0x2A], at: 23), let width = bytes.little(2, at: 26),
            let height = bytes.little(2, at: 28), width & 0x3FFF > 0, height & 0x3FFF > 0
        else { throw .damaged(.webp) }
        return ImageHeader(kind: .webp, width: width & 0x3FFF, height: height & 0x3FFF)
    }

    private static func lossless(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        guard bytes.holds([0x2F], at: 20), let bits = bytes.little(4, at: 21) else {
            throw .damaged(.webp)
        }
        return ImageHeader(
            kind: .webp, width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1)
    }

    private static func extended(_ bytes: [UInt8], end: Int) throws(ImageCodecError) -> ImageHeader
    {
        guard let width = bytes.little(3, at: 24), let height = bytes.little(3, at: 27) else {
            throw .damaged(.webp)
        }
        var header = ImageHeader(kind: .webp, width: width + 1, height: height + 1)
        var offset = 12
        var frames = 0
        while end - offset >= 8, let length = bytes.little(4, at: offset + 4) {
            guard end - offset - 8 >= length else { throw .damaged(.webp) }
            if bytes.holds("ANMF".utf8, at: offset) { frames += 1 }
            offset += 8 + length + length % 2
        }
        header.frames = max(1, frames)
        return header
    }
}
