import HTTPCore

/// Completes a 200 that broke off: asks for the rest, under a strong validator, and decides whether
/// the answer is that rest (RFC 9110 §13.1.5 and §14.4, RFC 9111 §3.4).
public struct RestOfResponse: Sendable, Equatable {
    /// What an answer is.
    public enum Answer: Sendable, Equatable {
        /// Its content is the rest.
        case rest
        /// Its content is the whole, of which the first bytes are known.
        case whole(known: UInt64)
        /// Something else.
        case unusable
    }

    /// Bytes of the body that are there.
    public let offset: UInt64
    /// Bytes of the whole body; `nil` if that is unknown.
    public let length: UInt64?
    private let entityTag: [UInt8]

    /// - Parameter offset: bytes of the body that are there.
    /// - Returns: `nil` if the response has no strong entity tag, or cannot be completed.
    public init?(of stored: StoredMetadata, storedHead: Span<UInt8>, offset: UInt64) {
        guard stored.status == 200, !stored.entityTag.isEmpty,
            !stored.flags.contains(.weakEntityTag), offset > 0,
            stored.bodyBytes.map({ offset < $0 }) ?? true
        else { return nil }
        self.offset = offset
        length = stored.bodyBytes
        entityTag = stored.entityTag.indices.map { storedHead[$0] }
    }

    /// At most so many bytes are appended.
    public var maximumFieldBytes: Int { entityTag.count + 64 }

    /// Appends Range and If-Range to a request.
    public func appendFields(to writer: inout HeadWriter) {
        writer.append("Range: bytes=")
        writer.append(decimal: offset)
        writer.append("-\r\n")
        writer.append(field: .ifRange, entityTag.span)
    }

    /// What a final response to the request is.
    public func answer(_ response: borrowing ResponseHead, in bytes: Span<UInt8>) -> Answer {
        guard let tag = response.fields.only(.etag)?.value,
            EntityTag.stronglyMatches(
                tag, in: bytes, ByteRange(start: 0, count: UInt32(entityTag.count)),
                in: entityTag.span)
        else { return .unusable }
        switch response.status {
        case 200:
            if let length, let other = response.framing.length, length != other {
                return .unusable
            }
            return .whole(known: offset)
        case 206:
            guard let value = response.fields.only(.contentRange)?.value,
                let range = ContentRange(value, in: bytes), range.first == offset,
                range.last == range.complete - 1, length.map({ $0 == range.complete }) ?? true
            else { return .unusable }
            return .rest
        default: return .unusable
        }
    }
}

/// The value of a Content-Range that says which bytes of how many follow (RFC 9110 §14.4).
///
///     Content-Range = "bytes" SP first-pos "-" last-pos "/" complete-length
struct ContentRange: Equatable {
    let first: UInt64
    let last: UInt64
    let complete: UInt64

    /// `nil` for anything else: another unit, an unknown length, an unsatisfied range.
    init?(_ value: ByteRange, in bytes: Span<UInt8>) {
        let unit = ByteRange(start: value.start, count: min(6, value.count))
        guard bytes.holds(lowercase: "bytes ", at: unit) else { return nil }
        var position = Int(unit.end)
        let end = Int(value.end)
        func number(endingAt mark: UInt8?) -> UInt64? {
            let start = position
            while position < end, ASCII.isDigit(bytes[position]) { position += 1 }
            guard mark == nil ? position == end : position < end && bytes[position] == mark else {
                return nil
            }
            defer { position += 1 }
            return DecimalNumber.parse(ByteRange(from: start, to: position), in: bytes)
        }
        guard let first = number(endingAt: UInt8(ascii: "-")),
            let last = number(endingAt: UInt8(ascii: "/")), let complete = number(endingAt: nil),
            first <= last, last < complete
        else { return nil }
        (self.first, self.last, self.complete) = (first, last, complete)
    }
}
