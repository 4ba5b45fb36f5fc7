import HTTPCore

/// The trailer fields of a stored response (RFC 9110 §6.5): at the end of its stored head, after
/// an empty line, each line with its CRLF. A head without trailers has no empty line.
///
/// They are sent again with the whole content, to clients that accept trailers.
public enum StoredTrailers {
    /// The maximum size of the lines in bytes, and their maximum number: those of a message's
    /// trailer section (`ChunkedLimits`).
    static let maximumBytes = ChunkedLimits().trailerBytes

    /// A stored head with the trailers of the response.
    ///
    /// Left out are the fields that must not be accepted from a trailer section (RFC 9110 §6.5.1),
    /// and those that `private` or `no-cache` name.
    ///
    /// - Parameter head: the stored head, without trailers.
    /// - Returns: `nil` if nothing is left, or too much: trailers may always be discarded.
    public static func head(
        _ head: Span<UInt8>, with trailers: TrailerSection
    ) -> [UInt8]? {
        let bytes = trailers.bytes.span
        let kept = QualifiedFields(storedHead: head, of: [.privateFields, .noCacheFields])
        let whole = [UInt8](unsafeUninitializedCapacity: head.count + bytes.count + 2) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            writer.append(head)
            writer.appendLineEnd()
            writer.appendFields(
                trailers.fields, of: bytes, omitting: .forbiddenInTrailers, kept)
            $1 = writer.overflowed ? 0 : writer.count
        }
        let count = whole.count - head.count - 2
        guard count > 0, count <= maximumBytes, StoredLines.end(of: whole.span) == head.count else {
            return nil
        }
        return whole
    }

    /// The trailer fields of a stored head; `nil` if it has none.
    public static func section(of head: Span<UInt8>) -> TrailerSection? {
        guard let end = StoredLines.end(of: head), end < head.count else { return nil }
        let lines = head.extracting((end + 2)...)
        let message = [UInt8](unsafeUninitializedCapacity: lines.count + 5) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            writer.append("0\r\n")
            writer.append(lines)
            writer.appendLineEnd()
            $1 = writer.count
        }
        var decoder = ChunkedDecoder()
        var position = 0
        while !decoder.isComplete {
            let rest = message.span.extracting(position...)
            switch try? decoder.decode(rest) {
            case .needMore(let consumed) where consumed > 0: position += consumed
            case .end: break
            default: return nil
            }
        }
        return decoder.trailerSection
    }

    /// At most so many bytes are appended by `appendAnnouncement`.
    public static func announcementBytes(of trailers: TrailerSection) -> Int {
        trailers.bytes.count + 16
    }

    /// Appends the Trailer field that names the trailers (RFC 9110 §6.6.2).
    public static func appendAnnouncement(
        of trailers: TrailerSection, to writer: inout HeadWriter
    ) {
        writer.appendName(.trailer)
        var isFirst = true
        for field in trailers.fields where !FieldIDSet.forbiddenInTrailers.contains(field.id) {
            if !isFirst { writer.append(", ") }
            isFirst = false
            writer.append(field.name, of: trailers.bytes.span)
        }
        writer.appendLineEnd()
    }
}

extension StoredMetadata {
    /// The same for a head to which trailers have been added.
    /// - Parameter headBytes: the size of the head with them.
    public func withTrailers(headBytes: Int) -> StoredMetadata {
        var metadata = self
        metadata.headBytes = UInt32(headBytes)
        metadata.flags.insert(.hasTrailers)
        return metadata
    }
}
