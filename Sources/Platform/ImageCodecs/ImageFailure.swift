/// Why an image is refused, or cannot be turned into another.
package enum ImageFailure: Error, Sendable, Equatable {
    /// It begins like none of the types that are recognized.
    case notAnImage
    /// It ends too early.
    case truncated(ImageKind)
    /// It contradicts its format.
    case damaged(ImageKind)
    /// A form of the format that is not decoded here.
    case unsupported(ImageKind)
    /// Nothing turns this type into one that is accepted.
    case notAccepted(ImageKind)
    /// It must be scaled down, and none of the accepted types can be written.
    case notWritable(ImageKind)
    /// More bytes than so many.
    case tooManyBytes(limit: Int)
    /// Width times height is more than the limit.
    case tooManyPixels(width: Int, height: Int, limit: Int)
    case tooManyFrames(Int, limit: Int)
    /// What was made of it has more bytes than so many.
    case resultTooLarge(limit: Int)
    /// Decoding it takes more memory than there is for one image.
    case noMemory

    /// A clause that says it, without anything of the content.
    package var detail: String {
        switch self {
        case .notAnImage:
            "the content is no PNG, JPEG, GIF, WebP or AVIF image"
        case .truncated(let kind):
            "the \(kind.name) image ends too early"
        case .damaged(let kind):
            "the \(kind.name) image is damaged"
        case .unsupported(let kind):
            "the \(kind.name) image has a form that is not decoded here"
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
            "what was made of the image has more than \(limit) bytes"
        case .noMemory:
            "the image takes more memory to decode than there is for one image"
        }
    }
}
