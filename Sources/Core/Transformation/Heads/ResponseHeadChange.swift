import ContentCoding
import HTTPCore

/// How the head of a response is written anew after its content was looked at: what goes out is
/// there as a whole, and in most cases is another representation than the origin sent.
///
/// Last-Modified and Cache-Control stay: what they say of the origin's representation is true of
/// what is made of it.
package struct ResponseHeadChange: Sendable, Equatable {
    /// What becomes of Content-Encoding.
    package enum Encoding: Sendable, Equatable {
        case kept
        /// The field in place of which this one stands; `identity` is said by none.
        case replaced(ContentCoding)
    }

    /// Whether the content is another than the origin's: also where only a coding was undone (RFC
    /// 9110, section 8.8.1). Where it is not, only the framing changes.
    package var changesContent: Bool
    /// Bytes of the content that goes out; nil: not known, as for HEAD. What answers a condition
    /// (304) has none.
    package var length: Int?
    /// The media type of the new content; nil: the origin's.
    package var contentType: String?
    /// Whether nothing is said of the type.
    package var leavesOutContentType = false
    package var contentEncoding = Encoding.kept
    /// How the origin's entity tag is translated; nil: it goes where the content changes.
    package var entityTags: EntityTagMapping?
    /// Whether another coding, or none, would have been sent to a client that accepts others: Vary
    /// names Accept-Encoding then (RFC 9110, section 12.5.5). A media type that was asked for in
    /// place of the client's is no reason for Accept in Vary: what the client prefers then makes no
    /// difference. An Accept that the origin names there stays, and does no harm.
    package var dependsOnAcceptEncoding = false

    /// - Parameters:
    ///   - changesContent: whether the content is another than the origin's.
    ///   - length: bytes of the content that goes out; nil: not known.
    package init(changesContent: Bool, length: Int?) {
        self.changesContent = changesContent
        self.length = length
    }

    /// The fields that are not true of changed content: digests of the origin's bytes (Content-MD5
    /// by RFC 1864, Digest by RFC 3230, Content-Digest and Repr-Digest by RFC 9530), a signature,
    /// which commonly covers these (RFC 9421), and the offer of ranges of the origin's bytes (RFC
    /// 9110, section 14.3).
    private static let ofContent =
        [HeadName.acceptRanges]
        + [
            "Content-MD5", "Digest", "Content-Digest", "Repr-Digest", "Signature",
            "Signature-Input",
        ].map(HeadName.init)

    /// The head that takes the place of a response's, with its empty line. The start line and all
    /// that is true of the new content stay as they are.
    ///
    /// A response that has no content by its status (304, 204) describes what a GET would be
    /// answered with: what it says of that is mapped alike, and nothing is added that it does not
    /// say.
    package func head(of response: borrowing ResponseHead, in bytes: Span<UInt8>) -> [UInt8] {
        var lines = HeadLines(response.fields)
        // The message ends by its length now, and has no trailers.
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

    /// Of several lines none can be told to be the tag.
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
