import HTTPCore

/// Rewritten request heads.
package enum RequestHeads {
    /// The fields that describe content, and how it is sent, and that do not apply to translated
    /// content. Digests: RFC 1864, RFC 3230, RFC 9530. `Expect` was answered when the content was
    /// gathered. Signatures (RFC 9421) are kept: one that covers what was changed must fail where
    /// it is verified, and any other is still valid.
    private static let ofContent =
        [
            HeadName.transferEncoding, .trailer, .expect, .contentEncoding,
        ] + ["Content-MD5", "Digest", "Content-Digest", "Repr-Digest"].map(HeadName.init)

    /// The head of a request whose content was translated, with its empty line.
    ///
    /// - Parameters:
    ///   - request: the head as parsed.
    ///   - bytes: the bytes it was parsed from.
    ///   - contentType: the type of the new content; `nil` if there is no content and no
    /// Content-Type.
    ///   - length: the size of the new content in bytes; `nil` if there is no content and no
    /// Content-Length.
    ///   - query: encoded pairs to add to the target; `nil` or empty if there are none.
    ///   - queryRemoved: whether the target's own query is removed.
    package static func head(
        replacingContentOf request: borrowing RequestHead, in bytes: Span<UInt8>,
        contentType: String?, length: Int?, query: String? = nil, queryRemoved: Bool = false
    ) -> [UInt8] {
        var lines = HeadLines(request.fields)
        for name in ofContent { lines.remove(name, in: bytes) }
        if let value = contentType.flatMap(FieldRule.value) {
            lines.set(.contentType, value, in: bytes)
        } else {
            lines.remove(.contentType, in: bytes)
        }
        if let length {
            lines.set(.contentLength, Array("\(length)".utf8), in: bytes)
        } else {
            lines.remove(.contentLength, in: bytes)
        }
        let target = target(of: request, in: bytes, adding: query, removingQuery: queryRemoved)
        return head(of: request, in: bytes, target: target, lines: lines)
    }

    /// The head of a request with other entity tags in If-Match; `nil` if none of them changes.
    /// - Parameter map: returns the tag that takes the place of one.
    package static func head(
        of request: borrowing RequestHead, in bytes: Span<UInt8>, ifMatch map: ([UInt8]) -> [UInt8]
    ) -> [UInt8]? {
        var lines = HeadLines(request.fields)
        UpstreamRequestChange.mapTags(.ifMatch, of: &lines, in: bytes, map)
        guard lines.isChanged else { return nil }
        return head(of: request, in: bytes, target: nil, lines: lines)
    }

    private static func target(
        of request: borrowing RequestHead, in bytes: Span<UInt8>, adding query: String?,
        removingQuery: Bool
    ) -> [UInt8]? {
        guard request.form == .origin || request.form == .absolute else { return nil }
        var target = [UInt8](copying: bytes.extracting(request.target.indices))
        // The authority contains no question mark.
        let mark = target.firstIndex(of: UInt8(ascii: "?"))
        if removingQuery, let mark { target.removeSubrange(mark...) }
        let added = (query ?? "").utf8.filter(ByteClass.isTarget)
        if !added.isEmpty {
            if removingQuery || mark == nil {
                target.append(UInt8(ascii: "?"))
            } else if target.last != UInt8(ascii: "?") {
                target.append(UInt8(ascii: "&"))
            }
            target += added
        }
        return target
    }

    /// The start line with its own or another target, the lines, and the empty line.
    static func head(
        of request: borrowing RequestHead, in bytes: Span<UInt8>, target: [UInt8]?,
        lines: HeadLines
    ) -> [UInt8] {
        let start = Int(request.methodRange.start)
        // After the version and CRLF.
        let lineEnd = Int(request.target.end) + " HTTP/1.1\r\n".utf8.count
        var output: [UInt8] = []
        output.reserveCapacity(
            lineEnd - start + (target?.count ?? 0) + lines.count + 2)
        if let target {
            output.append(bytes.extracting(start..<Int(request.target.start)))
            output += target
            output.append(bytes.extracting(Int(request.target.end)..<lineEnd))
        } else {
            output.append(bytes.extracting(start..<lineEnd))
        }
        lines.write(to: &output, from: bytes)
        output += [0x0D, 0x0A]
        return output
    }
}
