/// A format of images that is read, told by the first bytes of the content.
public enum ImageFormat: String, Sendable, CaseIterable {
    /// Portable Network Graphics (RFC 2083).
    case png
    /// JPEG, in the file format JFIF or Exif.
    case jpeg
    /// Graphics Interchange Format, also animated.
    case gif
    /// WebP (RFC 9649), also animated.
    case webp
    /// AVIF, where its library is there.
    case avif

    /// What messages call it.
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

/// An image, with the content that it was read from.
public struct DecodedImage: Sendable, Equatable {
    /// As its first bytes tell.
    public var format: ImageFormat
    /// In pixels: of ``pixels`` where they are there, else as the head says, before the turn that
    /// ``orientation`` asks for.
    public var width: Int
    /// As ``width``.
    public var height: Int
    /// Pixels of the image for one point of the screen.
    public var scale: Double
    /// Pictures of an animation; 1: it is none.
    public var frames: Int
    /// Bits of a sample, as stored.
    public var bitsPerSample: Int
    /// How it is to be turned to be shown, EXIF's 1...8; 1: it is shown as it is, as all
    /// ``pixels`` are. What AVIF says of it is known only once it is decoded.
    public var orientation: Int
    /// The first picture; nil: it was not decoded.
    public var pixels: ImagePixels?
    /// The content of the response.
    public var content: [UInt8]

    /// Width and height in points of the screen.
    public var size: (width: Double, height: Double) {
        (Double(width) / scale, Double(height) / scale)
    }
}

/// A picture's pixels, turned as they are to be shown.
public struct ImagePixels: Sendable, Equatable {
    /// Pixels of a row.
    public var width: Int
    /// Rows.
    public var height: Int
    /// `width` × `height` × 4 bytes: red, green, blue and alpha, by which the colours are not
    /// multiplied; from the top left, rows without padding.
    public var rgba: [UInt8]
    /// The ICC profile of the colours; empty: sRGB.
    public var profile: [UInt8]

    /// A picture of these parts; see the properties.
    public init(width: Int, height: Int, rgba: [UInt8], profile: [UInt8] = []) {
        self.width = width
        self.height = height
        self.rgba = rgba
        self.profile = profile
    }
}

/// How large images may be: each is an upper bound, held before anything is decoded.
public struct ImageLimits: Sendable, Equatable {
    /// Bytes of the content.
    public var bytes: Int
    /// Width times height.
    public var pixels: Int
    /// Pictures of an animation.
    public var frames: Int

    /// The standard limits, but for those that are given.
    public init(bytes: Int = 64 << 20, pixels: Int = 1 << 24, frames: Int = 1000) {
        self.bytes = bytes
        self.pixels = pixels
        self.frames = frames
    }

    /// 64 MiB, 2^24 pixels, 1000 pictures.
    public static let standard = ImageLimits()
}

/// Why an image is not read.
public enum ImageError: Error, Sendable, Equatable, CustomStringConvertible {
    /// It begins like no image.
    case notAnImage
    /// It is of a format, in its usual name, that is recognized and not read.
    case formatNotRead(String)
    /// It ends too early.
    case truncated(ImageFormat)
    /// It contradicts its format.
    case damaged(ImageFormat)
    /// A form of the format that is not decoded, or the library that decodes it is not there.
    case notDecoded(ImageFormat)
    /// The content has more bytes than it may have.
    case tooManyBytes(limit: Int)
    /// Width times height is more than it may be.
    case tooManyPixels(width: Int, height: Int, limit: Int)
    /// It has more pictures than it may have.
    case tooManyFrames(Int, limit: Int)
    /// Decoding it takes more memory than there is.
    case memory
    /// What decodes could not do its work, and why: for decoders of the caller's own.
    case decoder(String)

    public var description: String {
        switch self {
        case .notAnImage: "the content is no image"
        case .formatNotRead(let name):
            "\(name) images are not read; PNG, JPEG, GIF, WebP and AVIF are"
        case .truncated(let format): "the \(format.name) image ends too early"
        case .damaged(let format): "the \(format.name) image is damaged"
        case .notDecoded(let format):
            "the \(format.name) image has a form that is not decoded here"
        case .tooManyBytes(let limit): "the image has more than \(limit) bytes"
        case .tooManyPixels(let width, let height, let limit):
            "the image has \(width) × \(height) pixels, and at most \(limit) are allowed"
        case .tooManyFrames(let frames, let limit):
            "the image has \(frames) frames, and at most \(limit) are allowed"
        case .memory: "there is no memory for the image"
        case .decoder(let why): "the image was not decoded: \(why)"
        }
    }
}
