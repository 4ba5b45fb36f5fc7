import HTTPCore

/// How to ask the origin about a stored response (RFC 9111 §4.3.1).
package struct Validation: Sendable, Equatable {
    /// Why the stored response cannot be used as it is.
    package let reason: ForwardReason
    /// Value for If-None-Match in the stored head; empty: ours is not added.
    package let entityTag: ByteRange
    /// Value for If-Modified-Since in the stored head; empty: not sent.
    package let lastModified: ByteRange
    /// The client's own If-None-Match members are sent too (§4.3.2), so that the origin can say 304
    /// about the client's copy when ours is outdated.
    package let includesClientTags: Bool

    /// The request fields that `appendFields` writes anew: the forwarded request must leave the
    /// client's own out. Range and If-Range are forwarded as they came.
    package static let replacedFields = FieldIDSet([.ifNoneMatch, .ifModifiedSince])

    init(
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

    /// Writes the conditional field lines of the request to the origin.
    ///
    /// - Parameters:
    ///   - request: the client's request, for its own entity tags.
    ///   - requestBytes: its bytes.
    ///   - storedHead: the stored head.
    ///   - writer: takes zero to a few lines, each with CRLF.
    package func appendFields(
        for request: borrowing RequestHead, in requestBytes: Span<UInt8>,
        storedHead: Span<UInt8>, to writer: inout HeadWriter
    ) {
        if includesClientTags {
            var lines = FieldLines(.ifNoneMatch)
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
