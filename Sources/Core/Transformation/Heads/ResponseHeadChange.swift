import ContentCoding
import HTTPCore

/// How the head of a response is rewritten after its content was examined: the content to send is
/// entirely in memory, and in most cases is a different representation than the origin sent.
///
/// Last-Modified and Cache-Control are kept: what they state about the origin's representation also
/// applies to the changed one.
package struct ResponseHeadChange: Sendable, Equatable {
    /// How Content-Encoding changes.
    package enum Encoding: Sendable, Equatable {
        case kept
        /// The coding that replaces the current one; `identity` means no field.
        case replaced(ContentCoding)
    }

    /// Whether the content differs from the origin's, even if only a coding was removed (RFC 9110
    /// §8.8.1). If not, only the framing changes.
    package var changesContent: Bool
    /// The size in bytes of the content to send; `nil` if unknown, as for HEAD. The answer to a
    /// condition (304) has none.
    package var length: Int?
    /// The media type of the new content; `nil` if it is the origin's.
    package var contentType: String?
    /// Whether Content-Type is omitted.
    package var leavesOutContentType = false
    package var contentEncoding = Encoding.kept
    /// How the origin's entity tag is translated; `nil` if it is removed when the content changes.
    package var entityTags: EntityTagMapping?
    /// Whether a client that accepts other codings would have been sent another one, or none: Vary
    /// then names Accept-Encoding (RFC 9110 §12.5.5). A media type that was requested in place of
    /// the client's is no reason for Accept in Vary, because the client's preference makes no
    /// difference. If the origin's Vary names Accept, it is kept, which does no harm.
    package var dependsOnAcceptEncoding = false

    /// - Parameters:
    ///   - changesContent: whether the content differs from the origin's.
    ///   - length: the size in bytes of the content to send; `nil` if unknown.
    package init(changesContent: Bool, length: Int?) {
        self.changesContent = changesContent
        self.length = length
    }

    /// The fields that do not apply to changed content: digests of the origin's bytes (Content-MD5
    /// by RFC 1864, Digest by RFC 3230, Content-Digest and Repr-Digest by RFC 9530), a signature,
    /// which commonly covers these (RFC 9421), and the offer of ranges of the origin's bytes (RFC
    /// 9110 §14.3).
    private static let ofContent =
        [HeadName.acceptRanges]
        + [
            "Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Signature",
            "Signature-Input",
        ].map(HeadName.init)

    /// The new head of a response, with its empty line. The start line and everything that applies
    /// to the new content stay as they are.
    ///
    /// A response that has no content because of its status (304, 204) describes the response to a
    /// GET: what it states about that is translated in the same way, and nothing is added that it
    /// does not state.
    package func head(of response: borrowing ResponseHead, in bytes: Span<UInt8>) -> [UInt8] {
        var lines = HeadLines(response.fields)
        // The message is now delimited by its length, and has no trailers.
        lines.remove(.transferEncoding, in: bytes)
        lines.remove(.trailer, in: bytes)
        let hasContent = response.status != 304 && response.status != 204
        if hasContent, let length {
            lines.set(.contentLength, Array("\(length)".utf8), in: bytes)
        } else if changesContent || response.status == 204 {
            lines.remove(.contentLength, in: bytes)
        }
        if leavesOutContentType { lines.remove(.contentType, in: bytes) }
        if changesContent { describe(&lines, hasContent: hasContent, in: bytes) }
        if dependsOnAcceptEncoding { Self.vary(&lines, in: bytes) }
        return Self.write(response, lines, in: bytes)
    }

    private func describe(
        _ lines: inout HeadLines, hasContent: Bool, in bytes: Span<UInt8>
    ) {
        for name in Self.ofContent { lines.remove(name, in: bytes) }
        if let value = contentType.flatMap(FieldRule.value),
            hasContent || lines.contains(.contentType, in: bytes)
        {
            lines.set(.contentType, value, in: bytes)
        }
        switch contentEncoding {
        case .kept: break
        case .replaced(.identity): lines.remove(.contentEncoding, in: bytes)
        case .replaced(let coding):
            guard hasContent || lines.contains(.contentEncoding, in: bytes) else { break }
            lines.set(.contentEncoding, Array("\(coding.name)".utf8), in: bytes)
        }
        translateTag(&lines, in: bytes)
    }

    /// If there are several lines, none can be identified as the tag.
    private func translateTag(_ lines: inout HeadLines, in bytes: Span<UInt8>) {
        let tags = lines.values(.entityTag, in: bytes)
        guard let tag = tags.first else { return }
        if tags.count == 1,
            let translated = entityTags?.translated(tag, coding: tagCoding)
        {
            lines.set(.entityTag, translated, in: bytes)
        } else {
            lines.remove(.entityTag, in: bytes)
        }
    }

    private var tagCoding: ContentCoding {
        if case .replaced(let coding) = contentEncoding { coding } else { .identity }
    }

    private static func vary(_ lines: inout HeadLines, in bytes: Span<UInt8>) {
        for value in lines.values(.vary, in: bytes) {
            var members = ListMembers(value.span)
            while let member = members.next(in: value.span) {
                let name = value.span.extracting(member)
                if name.equals("*") || name.equals(lowercase: "accept-encoding") { return }
            }
        }
        lines.append(HeadName.vary.written, HeadName.acceptEncoding.written)
    }

    private static func write(
        _ response: borrowing ResponseHead, _ lines: HeadLines, in bytes: Span<UInt8>
    ) -> [UInt8] {
        let start = response.fields.first.map { Int($0.name.start) } ?? Int(response.fields.end)
        var output: [UInt8] = []
        output.reserveCapacity(start + lines.count + 2)
        output.append(bytes.extracting(0..<start))
        lines.write(to: &output, from: bytes)
        output += [0x0D, 0x0A]
        return output
    }
}
