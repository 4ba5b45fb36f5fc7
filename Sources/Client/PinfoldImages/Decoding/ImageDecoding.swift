import ImageCodecs
public import PinfoldClient

/// Decodes images for an ``ImageResponseSerializer``.
///
/// Decoders are attacked with malicious content. To read images from servers that are not trusted,
/// provide your own decoder that does the work in another process.
public protocol ImageDecoding: Sendable {
    /// Decodes the first frame, oriented for display.
    ///
    /// - Parameters:
    ///   - content: An image whose header has been read and is within the limits.
    ///   - limits: The limits, which also apply to what the decoder finds, whatever the header
    ///     says.
    func decode(
        _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> ImagePixels
}

/// Decodes images in this process, using libpng, libjpeg, libwebp and libavif, and our own decoder
/// for GIF.
///
/// Size and memory are limited. But these libraries are written in C, and a bug in one of them is a
/// bug in this process: an image crafted for it may crash the process, or worse.
public struct InProcessImageDecoder: ImageDecoding {
    /// Creates a decoder. Decoders have no state.
    public init() {}

    public func decode(
        _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> ImagePixels {
        guard format != .avif || Codecs.hasAVIF else { throw .notDecoded(.avif) }
        do throws(ImageCodecError) {
            let header = try ImageCodecs.inspect(content)
            let decoded = try ImageCodecs.decode(content, header, maximumPixels: limits.pixels)
            let raster = try decoded.raster.oriented(decoded.orientation)
            return ImagePixels(
                width: raster.width, height: raster.height, rgba: Array(raster.pixels),
                profile: raster.profile)
        } catch {
            throw ImageError(error)
        }
    }
}

enum Codecs {
    /// Whether the AVIF library is installed. It is loaded when an image is first read, because it
    /// also reads the headers.
    static let hasAVIF = ImageCodecs.load()
}

extension ImageError {
    init(_ failure: ImageCodecError) {
        self =
            switch failure {
            case .notAnImage: .notAnImage
            case .truncated(let kind): .truncated(ImageFormat(kind))
            case .damaged(let kind): .damaged(ImageFormat(kind))
            case .unsupported(let kind), .notAccepted(let kind), .notWritable(let kind):
                .notDecoded(ImageFormat(kind))
            case .tooManyBytes(let limit), .resultTooLarge(let limit):
                .tooManyBytes(limit: limit)
            case .tooManyPixels(let width, let height, let limit):
                .tooManyPixels(width: width, height: height, limit: limit)
            case .tooManyFrames(let frames, let limit): .tooManyFrames(frames, limit: limit)
            case .noMemory: .memory
            }
    }
}

extension ImageFormat {
    init(_ kind: ImageKind) {
        self =
            switch kind {
            case .png: .png
            case .jpeg: .jpeg
            case .gif: .gif
            case .webp: .webp
            case .avif: .avif
            }
    }
}
