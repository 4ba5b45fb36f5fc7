import CImages

/// Reads and writes images with the system's libraries, and GIF with code of our own.
///
/// Decoding is meant for a process that has confined itself: the libraries are written in C, and
/// their input comes from the network.
package enum ImageCodecs {
    /// JPEG's quality, 1...100.
    package static let quality: Int32 = 90

    /// Loads what only decoding needs. Returns `false` if AVIF is not available; it is then refused
    /// as ``ImageCodecError/unsupported(_:)``.
    package static func load() -> Bool { image_load_avif() }

    /// Reads the image's header and walks over its parts, as far as that is possible without
    /// decoding: JPEG up to the frame header, the others to their end.
    package static func inspect(_ bytes: [UInt8]) throws(ImageCodecError) -> ImageHeader {
        guard let kind = ImageKind(signatureOf: bytes) else { throw .notAnImage }
        return switch kind {
        case .png: try PNGChunks.inspect(bytes)
        case .jpeg: try JPEGSegments.inspect(bytes)
        case .gif: try GIFReader(bytes).header
        case .webp: try WebPChunks.inspect(bytes)
        case .avif: try AVIFBoxes.inspect(bytes)
        }
    }

    private typealias Decoder = (
        UnsafePointer<UInt8>, Int, UInt64, UnsafeMutablePointer<image_pixels>
    ) -> Int32

    /// The first frame, and the orientation (EXIF's 1...8) in which it is to be shown. `header` is
    /// what ``inspect(_:)`` returned for the same bytes.
    package static func decode(
        _ bytes: [UInt8], _ header: ImageHeader, maximumPixels: Int
    ) throws(ImageCodecError) -> (raster: Raster, orientation: Int) {
        let decode: Decoder? =
            switch header.kind {
            case .png: image_decode_png
            case .jpeg: image_decode_jpeg
            case .webp: image_decode_webp
            case .avif: image_decode_avif
            case .gif: nil
            }
        guard let decode else {
            let reader = try GIFReader(bytes)
            try check(reader.header.width, reader.header.height, maximumPixels)
            return (try reader.decode(), 1)
        }
        var decoded = image_pixels()
        let status = bytes.withUnsafeBufferPointer { memory in
            memory.baseAddress.map {
                decode($0, memory.count, UInt64(max(0, maximumPixels)), &decoded)
            } ?? Int32(IMAGE_TRUNCATED)
        }
        if status == Int32(IMAGE_TOO_MANY_PIXELS) {
            throw .tooManyPixels(
                width: Int(decoded.width), height: Int(decoded.height), limit: maximumPixels)
        }
        if let failure = ImageCodecError(status: status, header.kind) { throw failure }
        guard let raster = Raster(taking: decoded) else { throw .noMemory }
        let turn = header.kind == .avif ? Int(decoded.orientation) : header.orientation
        return (raster, turn)
    }

    /// Throws if width times height exceeds the limit.
    package static func check(
        _ width: Int, _ height: Int, _ limit: Int
    ) throws(ImageCodecError) {
        let (pixels, overflow) = width.multipliedReportingOverflow(by: height)
        guard !overflow, pixels <= limit else {
            throw .tooManyPixels(width: width, height: height, limit: limit)
        }
    }

    /// PNG with eight bits per sample, with an alpha channel if any pixel needs it.
    package static func encodePNG(
        _ raster: Raster, maximumBytes: Int
    ) throws(ImageCodecError) -> [UInt8] {
        let hasAlpha = raster.hasTransparency
        return try encode(raster, as: .png, maximumBytes) { pixels, profile, length, written in
            image_encode_png(
                pixels, UInt32(raster.width), UInt32(raster.height), hasAlpha, profile, length,
                maximumBytes, &written)
        }
    }

    /// JPEG of quality 90 with chroma at half resolution; transparent areas become white.
    package static func encodeJPEG(
        _ raster: Raster, maximumBytes: Int
    ) throws(ImageCodecError) -> [UInt8] {
        try encode(raster, as: .jpeg, maximumBytes) { pixels, profile, length, written in
            image_encode_jpeg(
                pixels, UInt32(raster.width), UInt32(raster.height), quality, profile, length,
                maximumBytes, &written)
        }
    }

    private static func encode(
        _ raster: Raster, as kind: ImageKind, _ limit: Int,
        by write: (
            UnsafePointer<UInt8>, UnsafePointer<UInt8>?, Int, inout image_bytes
        ) -> Int32
    ) throws(ImageCodecError) -> [UInt8] {
        var written = image_bytes()
        let status = raster.profile.withUnsafeBufferPointer { profile in
            let hasProfile = !profile.isEmpty
            return write(
                raster.memory, hasProfile ? profile.baseAddress : nil, profile.count, &written)
        }
        if status == Int32(IMAGE_TOO_MANY_BYTES) { throw .resultTooLarge(limit: limit) }
        if let failure = ImageCodecError(status: status, kind) { throw failure }
        guard let bytes = written.bytes else { throw .noMemory }
        defer { image_free(bytes) }
        return Array(UnsafeBufferPointer(start: bytes, count: written.count))
    }
}
