/// A supported image format. It is recognized by the first bytes of the content.
public enum ImageFormat: String, Sendable, CaseIterable {
    /// Portable Network Graphics (RFC 2083).
    case png
    /// JPEG, in the file format JFIF or Exif.
    case jpeg
    /// Graphics Interchange Format, including animations.
    case gif
    /// WebP (RFC 9649), including animations.
    case webp
    /// AVIF, if its library is installed.
    case avif

    /// The name used in messages.
    public var name: String {
        switch self {
        case .png: "PNG"
        case .jpeg: "JPEG"
        case .gif: "GIF"
        case .webp: "WebP"
        case .avif: "AVIF"
        }
    }
}

/// An image, together with the content that it was read from.
public struct DecodedImage: Sendable, Equatable {
    /// The format, determined by the first bytes of the content.
    public var format: ImageFormat
    /// The width in pixels: that of ``pixels`` if the image was decoded, otherwise the width in the
    /// header, before ``orientation`` is applied.
    public var width: Int
    /// The height in pixels, determined like ``width``.
    public var height: Int
    /// The number of image pixels per point of the screen.
    public var scale: Double
    /// The number of frames; 1 for a still image.
    public var frames: Int
    /// The number of bits per sample, as stored.
    public var bitsPerSample: Int
    /// The EXIF orientation, 1...8, in which the image has to be displayed. ``pixels`` are already
    /// oriented, and then this is 1. The orientation of an AVIF image is known only once it has
    /// been decoded.
    public var orientation: Int
    /// The first frame, or `nil` if it was not decoded.
    public var pixels: ImagePixels?
    /// The content of the response.
    public var content: [UInt8]

    /// The width and height in points of the screen.
    public var size: (width: Double, height: Double) {
        (Double(width) / scale, Double(height) / scale)
    }
}

/// The pixels of a frame, oriented for display.
public struct ImagePixels: Sendable, Equatable {
    /// The number of pixels in a row.
    public var width: Int
    /// The number of rows.
    public var height: Int
    /// `width` × `height` × 4 bytes: red, green, blue and alpha, not premultiplied; from the top
    /// left, without padding between rows.
    public var rgba: [UInt8]
    /// The ICC colour profile. If empty, the colours are sRGB.
    public var profile: [UInt8]

    /// Creates an image from its parts; see the properties.
    public init(width: Int, height: Int, rgba: [UInt8], profile: [UInt8] = []) {
        self.width = width
        self.height = height
        self.rgba = rgba
        self.profile = profile
    }
}

/// The maximum sizes of images. They are enforced before anything is decoded.
public struct ImageLimits: Sendable, Equatable {
    /// The maximum size of the content, in bytes.
    public var bytes: Int
    /// The maximum of width times height.
    public var pixels: Int
    /// The maximum number of frames in an animation.
    public var frames: Int

    /// Creates limits; by default the standard ones.
    public init(bytes: Int = 64 << 20, pixels: Int = 1 << 24, frames: Int = 1000) {
        self.bytes = bytes
        self.pixels = pixels
        self.frames = frames
    }

    /// The standard limits: 64 MiB, 2^24 pixels, 1000 frames.
    public static let standard = ImageLimits()
}

/// An error in reading an image.
public enum ImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The content does not begin like any image.
    case notAnImage
    /// The format, given by its usual name, is recognized but not supported.
    case formatNotRead(String)
    /// The image is incomplete.
    case truncated(ImageFormat)
    /// The image is not valid in its format.
    case damaged(ImageFormat)
    /// The image uses a feature of its format that is not supported, or the format's library is not
    /// installed.
    case notDecoded(ImageFormat)
    /// The content exceeds the limit in bytes.
    case tooManyBytes(limit: Int)
    /// Width times height exceeds the limit.
    case tooManyPixels(width: Int, height: Int, limit: Int)
    /// The number of frames exceeds the limit.
    case tooManyFrames(Int, limit: Int)
    /// There is not enough memory to decode the image.
    case memory
    /// The decoder failed, for the given reason. For use by custom decoders.
    case decoder(String)

    public var description: String {
        switch self {
        case .notAnImage: "the content is not an image"
        case .formatNotRead(let name):
            "\(name) images are not supported; supported are PNG, JPEG, GIF, WebP and AVIF"
        case .truncated(let format): "the \(format.name) image is incomplete"
        case .damaged(let format): "the \(format.name) image is damaged"
        case .notDecoded(let format):
            "the \(format.name) image uses a feature that is not supported"
        case .tooManyBytes(let limit): "the image has more than \(limit) bytes"
        case .tooManyPixels(let width, let height, let limit):
            "the image has \(width) × \(height) pixels, and at most \(limit) are allowed"
        case .tooManyFrames(let frames, let limit):
            "the image has \(frames) frames, and at most \(limit) are allowed"
        case .memory: "there is not enough memory for the image"
        case .decoder(let reason): "the image could not be decoded: \(reason)"
        }
    }
}
