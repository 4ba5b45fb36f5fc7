/// Why content could not be decoded or encoded. Offsets are bytes from the beginning of the given
/// content; `nil` if unknown, because the coding in question is inside another one.
package enum ContentCodingError: Error, Sendable, Equatable {
    /// More codings than are decoded one after another.
    case tooManyCodings(maximum: Int)
    /// The output would exceed `maximum` bytes.
    case tooLarge(maximum: Int)
    /// The content ends before the coding's end.
    case truncated(ContentCoding, offset: Int?)
    /// Invalid data, including wrong checksums; the clause is the library's.
    case corrupt(ContentCoding, offset: Int?, String)
    /// Data follows the end of the coding: after gzip, anything but zero bytes.
    case trailingData(ContentCoding, offset: Int?)
    /// A library is out of memory.
    case outOfMemory

    /// The position in the given content.
    package var offset: Int? {
        switch self {
        case .truncated(_, let offset), .corrupt(_, let offset, _), .trailingData(_, let offset):
            offset
        case .tooManyCodings, .tooLarge, .outOfMemory: nil
        }
    }

    /// A clause that begins in lower case, without the position.
    package var detail: String {
        switch self {
        case .tooManyCodings(let maximum):
            "the content has more than \(maximum) nested codings"
        case .tooLarge(let maximum): "the content is larger than \(maximum) bytes when decoded"
        case .truncated(let coding, _): "the \(coding.name) content is truncated"
        case .corrupt(let coding, _, let what): "the \(coding.name) content is corrupt: \(what)"
        case .trailingData(let coding, _):
            "there is data after the end of the \(coding.name) content"
        case .outOfMemory: "there is no memory"
        }
    }

    /// The same error without its offset, where that would be meaningless.
    var withoutOffset: ContentCodingError {
        switch self {
        case .truncated(let coding, _): .truncated(coding, offset: nil)
        case .corrupt(let coding, _, let what): .corrupt(coding, offset: nil, what)
        case .trailingData(let coding, _): .trailingData(coding, offset: nil)
        case .tooManyCodings, .tooLarge, .outOfMemory: self
        }
    }
}
