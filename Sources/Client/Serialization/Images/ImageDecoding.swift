import ImageCodecs

/// What decodes images for an ``ImageResponseSerializer``. Content from elsewhere is what decoders
/// are attacked with: whoever reads images of servers that are not trusted gives a decoder of
/// their own here, which has another process do it.
public protocol ImageDecoding: Sendable {
    /// The first picture, turned as it is to be shown.
    ///
    /// - Parameters:
    ///   - content: An image whose head was read, and is within the limits.
    ///   - limits: They hold for what decoding finds, too, whatever the head says.
    func decode(
        _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> ImagePixels
}

/// Decodes in this process, by libpng, libjpeg, libwebp and libavif, and GIF by code of our own.
///
/// Size and memory are bounded. A fault of one of these libraries, which are written in C, is a
/// fault of this process, though: an image made for one may end it, or worse.
public struct InProcessImageDecoder: ImageDecoding {
    /// One is like the other: it has no state.
    public init() {}

    public func decode(
        _ content: [UInt8], _ format: ImageFormat, limits: ImageLimits
    ) throws(ImageError) -> ImagePixels {
        guard format != .avif || Codecs.hasAVIF else { throw .notDecoded(.avif) }
        do throws(ImageFailure) {
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
    /// Whether AVIF's library is there. It is loaded when an image is first read, for its head is
    /// read by it, too.
    static let hasAVIF = ImageCodecs.load()
}

extension ImageError {
    init(_ failure: ImageFailure) {
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
