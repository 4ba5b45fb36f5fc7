import HTTPCore

/// How to validate a stored response with the origin (RFC 9111 §4.3.1).
public struct ValidationRequest: Sendable, Equatable {
    /// Why the stored response cannot be used without validation.
    public let reason: ForwardReason
    /// The range in the stored head of the value for If-None-Match; empty if the stored tag is not
    /// sent.
    public let entityTag: ByteRange
    /// The range in the stored head of the value for If-Modified-Since; empty if it is not sent.
    public let lastModified: ByteRange
    /// Whether the members of the client's own If-None-Match are sent, too (§4.3.2), so that the
    /// origin can answer 304 for the client's copy if the stored one is outdated.
    public let includesClientTags: Bool

    /// The request fields that `appendFields` writes: the forwarded request must omit the client's
    /// own. Range and If-Range are forwarded as received.
    public static let replacedFields = FieldIDSet([.ifNoneMatch, .ifModifiedSince])

    @usableFromInline init(
        of stored: StoredMetadata, storedHead: Span<UInt8>, reason: ForwardReason,
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>
    ) {
        self.reason = reason
        lastModified = stored.lastModified
        includesClientTags =
            stored.status == 200 && !stored.entityTag.isEmpty
            && request.fields.contains(.ifNoneMatch)
            && !ClientCondition.hasAny(request.fields, in: requestBytes)
        let hasOurs =
            includesClientTags
            && ClientCondition.matches(request.fields, in: requestBytes, stored, storedHead)
        entityTag = hasOurs ? ByteRange() : stored.entityTag
    }

    /// Writes the conditional fields of the request to the origin.
    ///
    /// - Parameters:
    ///   - request: the client's request, for its own entity tags.
    ///   - requestBytes: its bytes.
    ///   - storedHead: the stored head.
    ///   - writer: receives zero to a few lines, each with CRLF.
    public func appendFields(
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>,
        storedHead: Span<UInt8>, to writer: inout HeadWriter
    ) {
        if includesClientTags {
            var lines = FieldValueIterator(.ifNoneMatch)
            while let value = lines.next(in: request.fields) {
                if value.isEmpty { continue }
                writer.append(field: .ifNoneMatch, requestBytes.extracting(value.indices))
            }
        }
        if !entityTag.isEmpty {
            writer.append(field: .ifNoneMatch, storedHead.extracting(entityTag.indices))
        }
        if !lastModified.isEmpty {
            writer.append(field: .ifModifiedSince, storedHead.extracting(lastModified.indices))
        }
    }
}
