import HTTPCore

/// The head of a response that is served from a stored one.
public enum HitHead {
    /// The maximum number of bytes that `append` writes in addition to the stored head: status
    /// line, Content-Range, Content-Length, Age, Cache-Status.
    public static let maximumAddedBytes = 160 + CacheStatus.maximumLineBytes

    /// The stored fields that a 304 includes (RFC 9110 §15.4.5). It excludes Set-Cookie and
    /// anything that describes a body, since none is sent.
    static let inNotModified = FieldIDSet([
        .cacheControl, .contentLocation, .date, .etag, .expires, .vary, .cacheStatus,
    ])

    /// The status of the response, and the phrase if the stored one is used; `nil` for the standard
    /// phrase.
    @inlinable public static func status(
        of hit: CacheHit, stored: StoredMetadata, storedHead: Span<UInt8>
    ) -> (code: UInt16, phrase: ByteRange?) {
        switch hit.form {
        case .full, .headOnly: (stored.status, StoredHead.phrase(in: storedHead))
        case .notModified: (304, nil)
        case .partial, .several: (206, nil)
        case .rangeNotSatisfiable: (416, nil)
        }
    }

    /// Appends the fields up to, but not including, Via, Connection and the empty line: the stored
    /// fields as the form requires, Content-Length, Age (RFC 9111 §4), Cache-Status.
    ///
    /// For `full` and `headOnly` this is one copy of the stored fields and a few short lines. Does
    /// not allocate.
    ///
    /// - Parameters:
    ///   - hit: the decision.
    ///   - stored: the stored response's metadata, with `bodyBytes`.
    ///   - storedHead: its head.
    ///   - cacheStatus: the Cache-Status to write; `nil` for that of a hit. A response that the
    /// origin has just confirmed is not a hit but `forwarded` with status 304.
    ///   - writer: must have room for the stored head and `maximumAddedBytes`; if it overflows, the
    /// head is unusable.
    @inline(__always)
    @inlinable public static func appendFields(
        _ hit: CacheHit, stored: StoredMetadata, storedHead: Span<UInt8>,
        cacheStatus: CacheStatus? = nil, to writer: inout HeadWriter
    ) {
        switch hit.form {
        case .full, .headOnly:
            if stored.flags.hasMoreThanFields {
                appendPart(hit.form, storedHead, stored.flags, &writer)
            } else {
                let fields = StoredHead.statusLineBytes(of: storedHead)..<storedHead.count
                writer.append(storedHead.extracting(fields))
            }
            if !stored.flags.contains(.hasContentLength), allowsContent(stored.status),
                let length = stored.bodyBytes
            {
                writer.append(field: .contentLength, decimal: length)
            }
        case .notModified, .partial, .several, .rangeNotSatisfiable:
            appendPart(hit.form, storedHead, stored.flags, &writer)
        }
        writer.append("Age: ")
        writer.append(decimal: hit.age.magnitude)
        writer.appendLineEnd()
        if let cacheStatus {
            cacheStatus.append(to: &writer)
        } else {
            CacheStatus.append(hit, to: &writer)
        }
    }

    /// The fields of a form that does not send the whole stored response.
    @inline(never)
    @usableFromInline static func appendPart(
        _ form: HitForm, _ storedHead: Span<UInt8>, _ flags: StoredFlags,
        _ writer: inout HeadWriter
    ) {
        let withheld = QualifiedFields(withheldBy: flags, in: storedHead)
        switch form {
        case .full, .headOnly: append(storedHead, without: withheld, to: &writer) { _ in true }
        case .notModified:
            append(storedHead, without: withheld, to: &writer) { inNotModified.contains($0) }
        case .partial(let first, let last, let complete):
            append(storedHead, without: withheld, to: &writer) {
                $0 != .contentLength && $0 != .contentRange
            }
            writer.append("Content-Range: bytes ")
            writer.append(decimal: first)
            writer.append(byte: UInt8(ascii: "-"))
            writer.append(decimal: last)
            writer.append(byte: UInt8(ascii: "/"))
            writer.append(decimal: complete)
            writer.appendLineEnd()
            writer.append(field: .contentLength, decimal: last - first + 1)
        case .several(let count, let boundary):
            let ofWhole = FieldIDSet([.contentLength, .contentRange])
            append(
                storedHead, without: withheld, named: "content-type", to: &writer
            ) { !ofWhole.contains($0) }
            writer.append("Content-Type: multipart/byteranges; boundary=")
            for byte in MultipartRanges.text(boundary).utf8 { writer.append(byte: byte) }
            writer.appendLineEnd()
            writer.append(field: .contentLength, decimal: count)
        case .rangeNotSatisfiable(let complete):
            append(storedHead, without: withheld, to: &writer) { $0 == .date || $0 == .vary }
            writer.append("Content-Range: bytes */")
            writer.append(decimal: complete)
            writer.append("\r\nContent-Length: 0\r\n")
        }
    }

    /// Whether a response with this status has content, and so a length (RFC 9110 §8.6).
    @inlinable static func allowsContent(_ status: UInt16) -> Bool { status != 204 }

    private static func append(
        _ storedHead: Span<UInt8>, without withheld: QualifiedFields?,
        named dropped: StaticString? = nil, to writer: inout HeadWriter,
        where isKept: (FieldID) -> Bool
    ) {
        var lines = StoredLines(storedHead)
        while let line = lines.next(in: storedHead) {
            if withheld?.contains(line.name, in: storedHead) ?? false { continue }
            if let dropped, storedHead.holds(lowercase: dropped, at: line.name) { continue }
            if isKept(line.id) { writer.append(line.line, of: storedHead) }
        }
    }
}
