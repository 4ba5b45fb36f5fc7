import CachePolicy
import ContentCoding
import HTTPCore

/// What a route that examines the content of responses requests from origins, in place of its
/// clients.
package struct UpstreamRequestChange: Sendable, Equatable {
    /// Whether content is examined: it is then requested as a whole, and in codings that can be
    /// decoded.
    package var examinesContent = false
    /// How the tags of the route's responses are translated back to the origin's; `nil` if they are
    /// the origin's.
    package var entityTags: EntityTagMapping?
    /// The media types that a translation needs (`application/json, */*;q=0.5`). They are requested
    /// in place of the client's preference, which describes the translation's output; `nil` if the
    /// client's Accept is sent.
    package var accept: String?

    /// Requests what clients request.
    package init() {}

    /// Whether no request is ever changed.
    package var isEmpty: Bool { !examinesContent && entityTags == nil && accept == nil }

    /// The new lines of a request on its way to the origin; `nil` if they do not change.
    ///
    /// - Parameters:
    ///   - lines: the start line and the field lines, each with CRLF, well-formed; without the
    /// empty line.
    ///   - unchanged: the tag of a response that is stored as the origin sent it, which is kept in
    /// conditions; `nil` if there is none.
    ///   - keepsDate: whether If-Modified-Since is the gateway's own, about a stored response. A
    /// client's does not reflect the rules that produced the client's copy: an origin must not
    /// confirm that copy by the date alone.
    package func upstreamLines(
        _ lines: Span<UInt8>, keeping unchanged: [UInt8]? = nil, keepsDate: Bool = false
    ) -> [UInt8]? {
        guard !isEmpty else { return nil }
        var fieldsStart = 0
        while fieldsStart < lines.count, lines[fieldsStart] != UInt8(ascii: "\n") {
            fieldsStart += 1
        }
        fieldsStart = min(fieldsStart + 1, lines.count)
        var fields = HeadLines(from: fieldsStart, of: lines)
        if examinesContent {
            fields.remove(.range, in: lines)
            fields.remove(.ifRange, in: lines)
            askForCodings(&fields, in: lines)
        }
        if let entityTags {
            if !keepsDate, !fields.contains(.ifNoneMatch, in: lines) {
                fields.remove(.ifModifiedSince, in: lines)
            }
            Self.mapTags(&fields, by: entityTags, keeping: unchanged, in: lines)
        }
        if let accept = accept.flatMap(FieldRule.value) {
            fields.set(.accept, accept, in: lines)
        }
        guard fields.isChanged else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(fieldsStart + fields.count)
        output.append(lines.extracting(0..<fieldsStart))
        fields.write(to: &output, from: lines)
        return output
    }

    /// Keeps in Accept-Encoding the codings that can be decoded. If it is absent it stays absent:
    /// that allows every coding (RFC 9110 §12.5.3), but servers then send none. `*` allows other
    /// codings, too, and is expanded. If nothing is left, `identity` is requested.
    private func askForCodings(_ fields: inout HeadLines, in lines: Span<UInt8>) {
        let values = fields.values(.acceptEncoding, in: lines)
        guard !values.isEmpty else { return }
        let accepted = AcceptedCodings(values)
        var kept: [[UInt8]] = []
        var isChanged = false
        for value in values {
            var members = ListMembers(value.span)
            while let member = members.next(in: value.span) {
                let member = Array(value[member])
                if Self.isUndone(member) {
                    kept.append(member)
                } else {
                    isChanged = true
                    kept += Self.writtenOut(member, besides: accepted)
                }
            }
        }
        guard isChanged else { return }
        if kept.isEmpty { kept = [Array("identity".utf8)] }
        let value = Array(kept.joined(separator: [UInt8(ascii: ","), 0x20]))
        fields.set(.acceptEncoding, value, in: lines)
    }

    /// Whether a member allows only what can be decoded.
    private static func isUndone(_ member: [UInt8]) -> Bool {
        let end = member.firstIndex { !ByteClass.isToken($0) } ?? member.count
        let bytes = member.span
        let name = bytes.extracting(0..<end)
        return ContentCoding(name: name) != nil
            || name.equals("*")
                && AcceptedCodings.weight(after: bytes.extracting(end..<bytes.count)) == 0
    }

    /// The replacement for a member that allows codings that cannot be decoded: for `*` the codings
    /// that are not listed, with its weight.
    private static func writtenOut(
        _ member: [UInt8], besides accepted: AcceptedCodings
    ) -> [[UInt8]] {
        guard member.first == UInt8(ascii: "*") else { return [] }
        let weight = member.dropFirst()
        guard AcceptedCodings.weight(after: member.span.extracting(1..<member.count)) != nil else {
            return []
        }
        return undone.filter { !accepted.names($0) }.map { Array("\($0.name)".utf8) + weight }
    }

    /// The codings that `*` is expanded to.
    private static let undone: [ContentCoding] = [.gzip, .deflate, .brotli, .zstd]

    /// Translates conditions back to the origin's tags (RFC 9110 §13.1).
    ///
    /// A client's copy whose tag does not have this mapping's suffix does not come from this
    /// translation: If-None-Match must not be answered with 304 for it, so such tags are removed,
    /// except that of a response stored as the origin sent it. If none is left the field is
    /// removed, together with If-Modified-Since, which the origin would have had to ignore
    /// (§13.1.3). If-Match protects what the origin has: a tag without the suffix is left for it to
    /// evaluate.
    private static func mapTags(
        _ fields: inout HeadLines, by mapping: EntityTagMapping, keeping unchanged: [UInt8]?,
        in lines: Span<UInt8>
    ) {
        mapTags(.ifMatch, of: &fields, in: lines) { mapping.original($0) ?? $0 }
        guard fields.contains(.ifNoneMatch, in: lines) else { return }
        mapTags(.ifNoneMatch, of: &fields, in: lines) { tag in
            if EntityTagMapping.areSame(tag, unchanged) { return unchanged }
            // A tag that is already listed is not repeated.
            guard let original = mapping.original(tag) else { return nil }
            return EntityTagMapping.areSame(original, unchanged) ? nil : original
        }
        if !fields.contains(.ifNoneMatch, in: lines) {
            fields.remove(.ifModifiedSince, in: lines)
        }
    }

    /// Maps the members of all lines of a field, except `*`, and removes those that become `nil`. A
    /// line of If-None-Match that becomes empty is removed.
    static func mapTags(
        _ name: HeadName, of fields: inout HeadLines, in lines: Span<UInt8>,
        _ map: ([UInt8]) -> [UInt8]?
    ) {
        for index in fields.lines.indices.reversed()
        where fields.isNamed(name, at: index, in: lines) {
            let old = tags(in: fields.value(at: index, in: lines))
            let new = old.compactMap { $0 == [UInt8(ascii: "*")] ? $0 : map($0) }
            if new.isEmpty, name == .ifNoneMatch {
                fields.remove(at: index)
            } else if new != old {
                let joined = Array(new.joined(separator: [UInt8(ascii: ","), 0x20]))
                fields.setValue(at: index, to: joined)
            }
        }
    }

    private static func tags(in value: [UInt8]) -> [[UInt8]] {
        var list = EntityTagList(ByteRange(from: 0, to: value.count))
        var tags: [[UInt8]] = []
        while let range = list.next(in: value.span) { tags.append(Array(value[range.indices])) }
        return tags
    }
}
