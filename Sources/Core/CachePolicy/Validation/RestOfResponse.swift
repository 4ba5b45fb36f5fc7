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
