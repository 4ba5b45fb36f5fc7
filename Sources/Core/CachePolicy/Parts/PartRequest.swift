import HTTPCore

/// A request for a part of a representation, in place of the client's own: for what is missing of
/// one whose parts are stored, or for the slice that contains what the client wants (RFC 9110 §14.2
/// and §13.1.5, RFC 9111 §3.4).
public struct PartRequest: Sendable, Equatable {
    /// What a final response is.
    public enum Answer: Sendable, Equatable {
        /// A 206 whose content begins at `first`.
        case part
        /// A 200 of the same representation, whose content begins before `first`.
        case whole
        /// The representation has changed or is gone: what is stored of it is outdated.
        case changed
        /// Something that says nothing about the representation.
        case unusable
    }

    /// The position of the first byte that is asked for.
    public let first: UInt64
    /// The position of the last byte that is asked for.
    public let last: UInt64
    /// The bytes of the whole representation; `nil` if nothing is known of it yet.
    public let complete: UInt64?
    /// The strong entity tag of the representation; empty if nothing is known of it yet.
    private let entityTag: [UInt8]

    /// For a representation of which nothing is known.
    public init(first: UInt64, last: UInt64) {
        (self.first, self.last) = (first, last)
        complete = nil
        entityTag = []
    }

    /// For one of which parts are stored.
    /// - Returns: `nil` if it has no strong entity tag, so that parts cannot be combined.
    public init?(
        first: UInt64, last: UInt64, of stored: StoredMetadata, storedHead: Span<UInt8>
    ) {
        guard stored.hasStrongEntityTag, let complete = stored.bodyBytes, first <= last,
            last < complete
        else { return nil }
        (self.first, self.last, self.complete) = (first, last, complete)
        entityTag = stored.entityTag.indices.map { storedHead[$0] }
    }

    /// Whether nothing is known of the representation yet: any response will do.
    public var isFirst: Bool { complete == nil }

    /// At most so many bytes are appended.
    public var maximumFieldBytes: Int { entityTag.count + 96 }

    /// Appends Range and, if the representation is known, If-Range to a request.
    public func appendFields(to writer: inout HeadWriter) {
        writer.append("Range: bytes=")
        writer.append(decimal: first)
        writer.append("-")
        // To the end: what most clients ask for, and what any server understands.
        if complete.map({ last < $0 - 1 }) ?? true { writer.append(decimal: last) }
        writer.append("\r\n")
        if !entityTag.isEmpty { writer.append(field: .ifRange, entityTag.span) }
    }

    /// What a final response to the request is.
    public func answer(_ response: borrowing ResponseHead, in bytes: Span<UInt8>) -> Answer {
        switch response.status {
        case 200, 206: break
        case 304, 400, 401, 403, 407, 408, 421, 425, 429, 431, 500...: return .unusable
        default: return .changed
        }
        guard let tag = response.fields.only(.etag)?.value,
            EntityTag.stronglyMatches(
                tag, in: bytes, ByteRange(start: 0, count: UInt32(entityTag.count)),
                in: entityTag.span)
        else { return .changed }
        guard response.status == 206 else {
            let length = response.framing.length
            return length == nil || length == complete ? .whole : .changed
        }
        guard let value = response.fields.only(.contentRange)?.value,
            let range = ContentRange(value, in: bytes)
        else { return .unusable }
        guard range.complete == complete else { return .changed }
        return range.first == first && range.last >= last ? .part : .unusable
    }
}

extension StoredMetadata {
    /// Whether two stored heads have the same strong entity tag.
    public func hasSameStrongTag(
        in head: Span<UInt8>, as other: StoredMetadata, in otherHead: Span<UInt8>
    ) -> Bool {
        hasStrongEntityTag && other.hasStrongEntityTag
            && EntityTag.areSame(entityTag, in: head, other.entityTag, in: otherHead)
    }

    /// Whether equal entity tags mean equal bytes (RFC 9110 §8.8.1).
    public var hasStrongEntityTag: Bool {
        !entityTag.isEmpty && !flags.contains(.weakEntityTag)
    }
}
