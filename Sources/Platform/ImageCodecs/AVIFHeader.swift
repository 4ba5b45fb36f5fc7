import CImages

/// The boxes of an AVIF file (ISO/IEC 14496-12, 23000-22): checks its brand, and that each box is
/// complete. Their contents are left to the library.
enum AVIFBoxes {
    /// The maximum number of brands that are examined.
    private static let mostBrands = 64

    /// Whether the first box, `ftyp`, names one of AVIF's brands.
    static func nameAVIF(_ bytes: [UInt8]) -> Bool {
        guard let size = bytes.big(4, at: 0), size >= 16 else { return false }
        let end = min(size, bytes.count, 16 + 4 * mostBrands)
        // The major brand, a version, and the compatible brands.
        for offset in [8] + Array(stride(from: 16, to: end, by: 4)) {
            if bytes.holds("avif".utf8, at: offset) || bytes.holds("avis".utf8, at: offset) {
                return true
            }
        }
        return false
    }

    static func inspect(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        try walk(bytes)
        var (width, height, frames, depth): (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
        let status = bytes.withUnsafeBufferPointer { memory in
            memory.baseAddress.map {
                image_inspect_avif($0, memory.count, &width, &height, &frames, &depth)
            } ?? Int32(IMAGE_TRUNCATED)
        }
        if let failure = ImageCodecError(status: status, .avif) { throw failure }
        guard width > 0, height > 0 else { throw .damaged(.avif) }
        var header = ImageHeader(kind: .avif, width: Int(width), height: Int(height))
        header.frames = Int(frames)
        header.bitsPerSample = Int(depth)
        return header
    }

    /// Walks from box to box up to the end of the content.
    private static func walk(_ bytes: [UInt8]) throws(ImageCodecError) {
        var offset = 0
        while offset < bytes.count {
            guard var size = bytes.big(4, at: offset), bytes.count - offset >= 8 else {
                throw .truncated(.avif)
            }
            var least = 8
            if size == 1 {
                guard bytes.count - offset >= 16 else { throw .truncated(.avif) }
                // No content is as long as the upper half could express.
                guard bytes.big(4, at: offset + 8) == 0 else { throw .truncated(.avif) }
                size = bytes.big(4, at: offset + 12) ?? 0
                least = 16
            } else if size == 0 {
                // Extends to the end of the file.
                return
            }
            guard size >= least else { throw .damaged(.avif) }
            guard size <= bytes.count - offset else { throw .truncated(.avif) }
            offset += size
        }
    }
}

extension ImageCodecError {
    /// The failure for a status of the C functions, or `nil` if it is not a failure, or one whose
    /// numbers only the caller knows.
    init?(status: Int32, _ kind: ImageKind) {
        switch Int(status) {
        case Int(IMAGE_OK): return nil
        case Int(IMAGE_TRUNCATED): self = .truncated(kind)
        case Int(IMAGE_UNSUPPORTED): self = .unsupported(kind)
        case Int(IMAGE_NO_MEMORY): self = .noMemory
        default: self = .damaged(kind)
        }
    }
}
