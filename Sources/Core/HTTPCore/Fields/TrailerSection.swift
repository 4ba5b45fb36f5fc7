/// The trailer fields of a message whose content has ended (RFC 9110 §6.5).
public struct TrailerSection: Sendable {
    /// The bytes of the field lines, followed by the empty line.
    public let bytes: ContiguousArray<UInt8>
    /// The fields, over ``bytes``. Those in ``FieldIDSet/forbiddenInTrailers`` are not forwarded.
    public let fields: FieldSection

    @usableFromInline init(bytes: ContiguousArray<UInt8>, fields: FieldSection) {
        self.bytes = bytes
        self.fields = fields
    }

    /// Parses a whole section that did not arrive within a chunked body.
    ///
    /// - Parameter lines: the field lines, each ended by CRLF, and the empty line.
    /// - Throws: for a malformed line, and `truncatedBody` if the empty line is missing.
    public init(parsing lines: Span<UInt8>, limits: ChunkedLimits) throws(WireError) {
        guard lines.count <= limits.trailerBytes else { throw .trailersTooLarge }
        var scanner = FieldScanner(from: 0)
        var fields = FieldSection()
        let isComplete = try ChunkedDecoder.scan(
            lines, with: &scanner, into: &fields, limit: limits.trailerFields)
        guard isComplete, scanner.position == lines.count else { throw .truncatedBody }
        self.init(bytes: ContiguousArray(copying: lines), fields: fields)
    }
}

extension ContiguousArray<UInt8> {
    fileprivate init(copying bytes: Span<UInt8>) {
        self = bytes.withUnsafeBufferPointer { ContiguousArray($0) }
    }
}

extension ChunkedDecoder {
    /// The trailer section of a complete body; `nil` if it has none.
    @inlinable public var trailerSection: TrailerSection? {
        trailerBytes.isEmpty ? nil : TrailerSection(bytes: trailerBytes, fields: trailers)
    }
}

extension HeadWriter {
    /// Appends the trailer fields that may be forwarded (RFC 9110 §6.5.1), one per line.
    @inlinable public mutating func appendForwardedFields(_ trailers: TrailerSection) {
        appendFields(
            trailers.fields, of: trailers.bytes.span, omitting: .forbiddenInTrailers,
            dropsNominated: false)
    }

    /// Appends the line before a chunk's data (RFC 9112 §7.1).
    public mutating func appendChunkSize(_ count: Int) {
        append(hex: UInt64(count))
        appendLineEnd()
    }

    /// Appends the last chunk, the trailers that may be forwarded, and the end of the message.
    public mutating func appendLastChunk(_ trailers: TrailerSection) {
        append("0\r\n")
        appendForwardedFields(trailers)
        appendLineEnd()
    }

    /// Appends Via with the protocol version of the received message (RFC 9110 §7.6.3).
    @inline(__always)
    @inlinable public mutating func appendVia(received version: HTTPVersion) {
        append(version.viaLine)
    }
}
