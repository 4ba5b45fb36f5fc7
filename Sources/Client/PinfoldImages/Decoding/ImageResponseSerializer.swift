public import HTTPTypes
import ImageCodecs
public import PinfoldClient

/// Reads images: PNG, JPEG, GIF, WebP, and AVIF if its library is installed. The types of TIFF,
/// BMP, icons and X bitmaps are accepted, but such content is rejected with an error that names the
/// format.
///
/// The format is determined by the content, not by its type. Empty content results in no value and
/// no error.
public struct ImageResponseSerializer: ResponseSerializer {
    public var acceptance: ResponseAcceptance
    /// The limits for images. They are applied to the image's header before the image is decoded.
    public var limits = ImageLimits.standard
    /// The number of image pixels per point of the screen. It must be greater than 0.
    public var scale: Double
    /// Whether images are decoded immediately if they have at most ``inflatedPixels`` and eight
    /// bits per sample. For other images, only the header is read, and the content is kept for
    /// whoever draws them.
    public var inflates: Bool
    /// The maximum of width times height up to which images are decoded.
    public var inflatedPixels = 1024 * 1024
    /// The decoder. By default, images are decoded in this process.
    public var decoder: any ImageDecoding

    /// The accepted image types.
    public static let contentTypes = [
        "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon",
        "image/bmp", "image/x-bmp", "image/x-xbitmap", "image/x-win-bitmap", "image/webp",
        "image/avif",
    ]

    /// Creates a serializer.
    ///
    /// - Parameter decoder: The decoder. The default one decodes in this process, which is a risk
    ///   if the servers are not trusted (``InProcessImageDecoder``).
    public init(
        scale: Double = 1, inflates: Bool = true,
        decoder: any ImageDecoding = InProcessImageDecoder()
    ) {
        precondition(scale > 0, "the scale must be positive")
        acceptance = ResponseAcceptance(contentTypes: Self.contentTypes)
        self.scale = scale
        self.inflates = inflates
        self.decoder = decoder
    }

    public func serialize(
        _ response: HTTPResponse?, content: [UInt8]
    ) -> SerializedResponse<DecodedImage> {
        serialize(response, content: content) {
            (content) throws(ResponseSerializationError.Reason) in
            do throws(ImageError) { return content.isEmpty ? nil : try image(content) } catch {
                throw .image(error)
            }
        }
    }

    private func image(_ content: [UInt8]) throws(ImageError) -> DecodedImage {
        guard content.count <= limits.bytes else { throw .tooManyBytes(limit: limits.bytes) }
        let header = try header(of: content)
        var image = DecodedImage(
            format: ImageFormat(header.kind), width: header.width, height: header.height,
            scale: scale, frames: header.frames, bitsPerSample: header.bitsPerSample,
            orientation: header.orientation, content: content)
        let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
        guard inflates, !overflow, pixels <= inflatedPixels, header.bitsPerSample <= 8 else {
            return image
        }
        let decoded = try decoder.decode(content, image.format, limits: limits)
        (image.width, image.height) = (decoded.width, decoded.height)
        image.orientation = 1
        image.pixels = decoded
        return image
    }

    /// Reads the header and checks the limits.
    private func header(of content: [UInt8]) throws(ImageError) -> ImageHeader {
        do throws(ImageCodecError) {
            if ImageKind(signatureOf: content) == .avif, !Codecs.hasAVIF {
                throw .unsupported(.avif)
            }
            let header = try ImageCodecs.inspect(content)
            try ImageCodecs.check(header.width, header.height, limits.pixels)
            guard header.frames <= limits.frames else {
                throw .tooManyFrames(header.frames, limit: limits.frames)
            }
            return header
        } catch .notAnImage {
            throw UnreadFormat(signatureOf: content).map { .formatNotRead($0.rawValue) }
                ?? .notAnImage
        } catch {
            throw ImageError(error)
        }
    }
}

/// A format whose types are accepted, but whose content is not supported.
private enum UnreadFormat: String {
    case tiff = "TIFF"
    case bmp = "BMP"
    case icon = "ICO"
    case bitmap = "X bitmap"

    init?(signatureOf content: [UInt8]) {
        if content.starts(with: [0x49, 0x49, 0x2A, 0])
            || content.starts(with: [0x4D, 0x4D, 0, 0x2A])
        {
            self = .tiff
        } else if content.starts(with: "BM".utf8), content.count >= 26,
            content[6..<10].allSatisfy({ $0 == 0 })
        {
            self = .bmp
        } else if content.starts(with: [0, 0, 1, 0]) {
            self = .icon
        } else if content.starts(with: "#define ".utf8) {
            self = .bitmap
        } else {
            return nil
        }
    }
}
