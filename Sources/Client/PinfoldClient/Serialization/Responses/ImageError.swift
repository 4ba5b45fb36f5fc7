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
