/// Why content could not be decoded or encoded. Offsets are bytes from the beginning of the content
/// given; nil where they are not known, because another coding lies around the one at fault.
package enum ContentCodingError: Error, Sendable, Equatable {
    /// More codings than are undone one after another.
    case tooManyCodings(maximum: Int)
    /// More than `maximum` bytes would come out.
    case tooLarge(maximum: Int)
    /// The content ends before the coding's end.
    case truncated(ContentCoding, offset: Int?)
    /// Not what the coding says, checksums included; the clause is the library's.
    case corrupt(ContentCoding, offset: Int?, String)
    /// Something follows the coding's end: behind gzip, something other than zero bytes.
    case trailingData(ContentCoding, offset: Int?)
    /// A library has no memory.
    case outOfMemory

    /// Where in the content given.
    package var offset: Int? {
        switch self {
        case .truncated(_, let offset), .corrupt(_, let offset, _), .trailingData(_, let offset):
            offset
        case .tooManyCodings, .tooLarge, .outOfMemory: nil
        }
    }

    /// A clause that begins in lower case, without the place.
    package var detail: String {
        switch self {
        case .tooManyCodings(let maximum):
            "the content has more than \(maximum) codings one around the other"
        case .tooLarge(let maximum): "the content is larger than \(maximum) bytes when decoded"
        case .truncated(let coding, _): "the \(coding.name) content ends before its end"
        case .corrupt(let coding, _, let what): "the \(coding.name) content is corrupt: \(what)"
        case .trailingData(let coding, _): "something follows the end of the \(coding.name) content"
        case .outOfMemory: "there is no memory"
        }
    }

    /// The same where offsets are of no use.
    var withoutOffset: ContentCodingError {
        switch self {
        case .truncated(let coding, _): .truncated(coding, offset: nil)
        case .corrupt(let coding, _, let what): .corrupt(coding, offset: nil, what)
        case .trailingData(let coding, _): .trailingData(coding, offset: nil)
        case .tooManyCodings, .tooLarge, .outOfMemory: self
        }
    }
}
