import CachePolicy
import ContentCoding
import HTTPCore

/// What a route that looks at the content of responses asks origins for, in place of its clients.
package struct UpstreamAsk: Sendable, Equatable {
    /// Whether content is looked at: then it is asked for as a whole, and in codings that can be
    /// undone.
    package var looksAtContent = false
    /// How the tags of the route's responses are taken back to the origin's; nil: they are the
    /// origin's.
    package var entityTags: EntityTagMapping?
    /// The media types that a translation needs (`application/json, */*;q=0.5`). They are asked for
    /// in place of what the client prefers, which is what the translation makes of them; nil: the
    /// client's Accept is sent.
    package var accept: String?

    /// Asks for what clients ask for.
    package init() {}

    /// Whether no request is ever changed.
    package var isEmpty: Bool { !looksAtContent && entityTags == nil && accept == nil }

    /// The lines that take the place of those of a request on its way to the origin; nil: they
    /// stay.
    ///
    /// - Parameters:
    ///   - lines: the start line and the field lines, each with CRLF, well formed; without the
    ///     empty line.
    ///   - unchanged: the tag of what is stored as the origin sent it; it stays in conditions. nil:
    ///     there is none.
    ///   - keepsDate: If-Modified-Since is the gateway's own, about what it has stored. A client's
    ///     says nothing of the rules that have made what the client has: an origin must not
    ///     confirm it by that alone.
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
        if looksAtContent {
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

    /// Leaves of Accept-Encoding what can be undone. Absent it stays absent: that allows every
    /// coding (RFC 9110, section 12.5.3), but servers send none then. `*` allows others, too: it is
    /// written out. Where nothing is left, `identity` is asked for.
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

    /// Whether a member allows nothing that cannot be undone.
    private static func isUndone(_ member: [UInt8]) -> Bool {
        let end = member.firstIndex { !ByteClass.isToken($0) } ?? member.count
        let bytes = member.span
        let name = bytes.extracting(0..<end)
        return ContentCoding(name: name) != nil
            || name.equals("*")
                && AcceptedCodings.weight(after: bytes.extracting(end..<bytes.count)) == 0
    }

    /// What takes the place of a member that allows what cannot be undone: for `*` the codings that
    /// are not named, with its weight.
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

    /// What `*` stands for.
    private static let undone: [ContentCoding] = [.gzip, .deflate, .brotli]

    /// Takes conditions back to the origin's tags (RFC 9110, section 13.1).
    ///
    /// What a client has of a tag without our suffix is not of this translation: If-None-Match must
    /// not be answered with 304 for it, so such tags are left out, but for that of what is stored
    /// as the origin sent it. Where none is left the field goes, and If-Modified-Since with it,
    /// which the origin would have had to ignore (section 13.1.3). If-Match protects what the
    /// origin has: a tag without our suffix is left to it.
    private static func mapTags(
        _ fields: inout HeadLines, by mapping: EntityTagMapping, keeping unchanged: [UInt8]?,
        in lines: Span<UInt8>
    ) {
        mapTags(.ifMatch, of: &fields, in: lines) { mapping.original($0) ?? $0 }
        guard fields.contains(.ifNoneMatch, in: lines) else { return }
        mapTags(.ifNoneMatch, of: &fields, in: lines) { tag in
            if EntityTagMapping.areSame(tag, unchanged) { return unchanged }
            // What stands there anyway is not said twice.
            guard let original = mapping.original(tag) else { return nil }
            return EntityTagMapping.areSame(original, unchanged) ? nil : original
        }
        if !fields.contains(.ifNoneMatch, in: lines) {
            fields.remove(.ifModifiedSince, in: lines)
        }
    }

    /// Maps the members of all lines of a field, `*` excepted, and leaves out those that become
    /// nil. Of If-None-Match a line of which nothing is left goes.
    private static func mapTags(
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
