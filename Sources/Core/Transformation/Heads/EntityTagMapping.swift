import ContentCoding

/// The entity tags of changed representations (RFC 9110, section 8.8.3).
///
/// What is made of a representation by the rules of a route is another representation, and must not
/// have its tag. It gets the origin's tag with a suffix that names the rules: `"abc"` becomes
/// `"abc-1a2b3c4d"`, and where the content was encoded again `"abc-1a2b3c4d-gzip"`. So the tag says
/// which tag the origin knows it by, and changes with the rules. Weak ones stay weak; a strong one
/// stays strong, for the same content always becomes the same bytes.
package struct EntityTagMapping: Sendable, Equatable {
    /// The codings that content is encoded in again.
    package static let codings: [ContentCoding] = [.gzip, .brotli]

    /// Names the rules.
    package let identity: String
    /// With the coding where there is one.
    private let suffixes: [(coding: ContentCoding, text: [UInt8])]

    /// - Parameter identity: eight hexadecimal digits, others for other rules.
    package init(identity: String) {
        self.identity = identity
        let plain = [UInt8(ascii: "-")] + Array(identity.utf8)
        suffixes =
            [(.identity, plain)]
            + Self.codings.map { ($0, plain + [UInt8(ascii: "-")] + Array("\($0.name)".utf8)) }
    }

    package static func == (left: EntityTagMapping, right: EntityTagMapping) -> Bool {
        left.identity == right.identity
    }

    /// The tag of what is made of a representation; nil where the origin's is not one, so that it
    /// must go. A tag without quotes, as some servers send them, is taken as one.
    ///
    /// - Parameters:
    ///   - tag: the origin's, as it stands in the field.
    ///   - coding: the one that the content was encoded in again.
    package func translated(_ tag: [UInt8], coding: ContentCoding = .identity) -> [UInt8]? {
        guard let opaque = Self.opaque(of: tag) else { return nil }
        guard let suffix = suffixes.first(where: { $0.coding == coding })?.text else { return nil }
        return Array(tag[..<opaque.upperBound] + suffix + tag[opaque.upperBound...])
    }

    /// The origin's tag of what has the tag; nil: it has no suffix of these rules.
    package func original(_ tag: [UInt8]) -> [UInt8]? { parts(of: tag)?.original }

    /// The coding of what has the tag; nil: it has no suffix of these rules.
    package func coding(_ tag: [UInt8]) -> ContentCoding? { parts(of: tag)?.coding }

    private func parts(of tag: [UInt8]) -> (original: [UInt8], coding: ContentCoding)? {
        guard let opaque = Self.opaque(of: tag) else { return nil }
        let text = tag[opaque]
        guard
            let suffix = suffixes.first(where: {
                text.suffix($0.text.count).elementsEqual($0.text)
            })
        else { return nil }
        let end = opaque.upperBound - suffix.text.count
        // Without quotes nothing would be left.
        guard end > 0 else { return nil }
        return (Array(tag[..<end] + tag[opaque.upperBound...]), suffix.coding)
    }

    /// Whether two tags are the same by the weak comparison (RFC 9110, section 8.8.3.2).
    package static func areSame(_ left: [UInt8], _ right: [UInt8]?) -> Bool {
        right.map { withoutWeakness(left) == withoutWeakness($0) } ?? false
    }

    private static func withoutWeakness(_ tag: [UInt8]) -> ArraySlice<UInt8> {
        tag.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/")]) ? tag[2...] : tag[...]
    }

    /// What is between the quotes, or all of a tag without them; nil for what is no tag.
    ///
    ///     entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE
    ///     etagc      = %x21 / %x23-7E / obs-text
    private static func opaque(of tag: [UInt8]) -> Range<Int>? {
        var range = 0..<tag.count
        let isWeak = tag.starts(with: Array("W/\"".utf8))
        let start = isWeak ? 2 : 0
        if tag.count >= start + 2, tag[start] == UInt8(ascii: "\""),
            tag.last == UInt8(ascii: "\"")
        {
            range = start + 1..<tag.count - 1
        } else if tag.isEmpty || tag.contains(UInt8(ascii: ",")) {
            return nil
        }
        let isTag = tag[range].allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }
        return isTag ? range : nil
    }
}
