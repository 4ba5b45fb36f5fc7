/// Why an image is refused, or cannot be converted.
package enum ImageCodecError: Error, Sendable, Equatable {
    /// It begins like none of the recognized types.
    case notAnImage
    /// It ends too early.
    case truncated(ImageKind)
    /// It contradicts its format.
    case damaged(ImageKind)
    /// A variant of the format that is not supported here.
    case unsupported(ImageKind)
    /// This type is neither accepted nor converted into one that is.
    case notAccepted(ImageKind)
    /// It must be scaled down, and none of the accepted types can be written.
    case notWritable(ImageKind)
    /// It has more bytes than the limit.
    case tooManyBytes(limit: Int)
    /// Width times height exceeds the limit.
    case tooManyPixels(width: Int, height: Int, limit: Int)
    case tooManyFrames(Int, limit: Int)
    /// The result has more bytes than the limit.
    case resultTooLarge(limit: Int)
    /// Decoding it needs more memory than is available for one image.
    case noMemory

    /// A clause that describes it, without anything of the content.
    package var detail: String {
        switch self {
        case .notAnImage:
            "the content is not a PNG, JPEG, GIF, WebP or AVIF image"
        case .truncated(let kind):
            "the \(kind.name) image ends too early"
        case .damaged(let kind):
            "the \(kind.name) image is damaged"
        case .unsupported(let kind):
            "the \(kind.name) image uses a variant of the format that is not supported"
        case .notAccepted(let kind):
            "the image is \(kind.name), which the route neither accepts nor converts"
        case .notWritable(let kind):
            "the \(kind.name) image must be scaled down, and the route accepts neither PNG nor JPEG"
        case .tooManyBytes(let limit):
            "the image has more than \(limit) bytes"
        case .tooManyPixels(let width, let height, let limit):
            "the image has \(width) × \(height) pixels, and at most \(limit) are allowed"
        case .tooManyFrames(let frames, let limit):
            "the image has \(frames) frames, and at most \(limit) are allowed"
        case .resultTooLarge(let limit):
            "the converted image has more than \(limit) bytes"
        case .noMemory:
            "decoding the image needs more memory than is available for one image"
        }
    }
}
