public import PinfoldClient

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
