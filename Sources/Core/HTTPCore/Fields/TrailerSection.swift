/// The trailer fields of a message whose content has ended (RFC 9110 §6.5).
package struct TrailerSection: Sendable {
    /// The field lines' bytes, with the empty line behind them.
    package let bytes: ContiguousArray<UInt8>
    /// The fields, over ``bytes``. Those of ``FieldIDSet/forbiddenInTrailers`` do not go on.
    package let fields: FieldSection
}

extension ChunkedDecoder {
    /// The trailer section of a body that is complete; nil without one.
    package var trailerSection: TrailerSection? {
        trailerBytes.isEmpty ? nil : TrailerSection(bytes: trailerBytes, fields: trailers)
    }
}

extension HeadWriter {
    /// Appends the trailer fields that may go on (RFC 9110 §6.5.1), a line each.
    package mutating func appendForwardedFields(_ trailers: TrailerSection) {
        appendFields(
            trailers.fields, of: trailers.bytes.span, omitting: .forbiddenInTrailers,
            dropsNominated: false)
    }

    /// Appends the line before a chunk's data (RFC 9112 §7.1).
    package mutating func appendChunkSize(_ count: Int) {
        append(hex: UInt64(count))
        appendLineEnd()
    }

    /// Appends the last chunk with the trailers that may go on, and the end of the message.
    package mutating func appendLastChunk(_ trailers: TrailerSection) {
        append("0\r\n")
        appendForwardedFields(trailers)
        appendLineEnd()
    }

    /// Appends Via with the version of the message as it was received (RFC 9110 §7.6.3).
    @inline(__always)
    package mutating func appendVia(received version: HTTPVersion) {
        append(version == .http11 ? "Via: 1.1 pinfold\r\n" : "Via: 1.0 pinfold\r\n")
    }
}
