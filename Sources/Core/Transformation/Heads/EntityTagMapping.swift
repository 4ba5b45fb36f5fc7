import ContentCoding

/// The entity tags of changed representations (RFC 9110 §8.8.3).
///
/// The result of applying a route's rules to a representation is a different representation, and
/// must not have the same tag. It gets the origin's tag with a suffix that identifies the rules:
/// `"abc"` becomes `"abc-1a2b3c4d"`, and if the content was encoded again `"abc-1a2b3c4d-gzip"`. So
/// the tag contains the one that the origin knows, and changes with the rules. Weak tags stay weak;
/// a strong tag stays strong, because the same content always gives the same bytes.
package struct EntityTagMapping: Sendable, Equatable {
    /// The codings in which content is encoded again.
    package static let codings: [ContentCoding] = [.gzip, .brotli, .zstd]

    /// Identifies the rules.
    package let identity: String
    /// The suffixes, with the coding if there is one.
    private let suffixes: [(coding: ContentCoding, text: [UInt8])]

    /// - Parameter identity: eight hexadecimal digits, which differ for different rules.
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

    /// The tag of the changed representation; `nil` if the origin's is invalid, so that it must be
    /// removed. A tag without quotes, as some servers send it, is accepted.
    ///
    /// - Parameters:
    ///   - tag: the origin's, as in the field.
    ///   - coding: the coding in which the content was encoded again.
    package func translated(_ tag: [UInt8], coding: ContentCoding = .identity) -> [UInt8]? {
        guard let opaque = Self.opaque(of: tag) else { return nil }
        guard let suffix = suffixes.first(where: { $0.coding == coding })?.text else { return nil }
        return Array(tag[..<opaque.upperBound] + suffix + tag[opaque.upperBound...])
    }

    /// The origin's tag for a tag of this mapping; `nil` if it does not have a suffix of these
    /// rules.
    package func original(_ tag: [UInt8]) -> [UInt8]? { parts(of: tag)?.original }

    /// The coding in a tag of this mapping; `nil` if it does not have a suffix of these rules.
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

    /// Whether two tags are equal by weak comparison (RFC 9110 §8.8.3.2).
    package static func areSame(_ left: [UInt8], _ right: [UInt8]?) -> Bool {
        right.map { withoutWeakness(left) == withoutWeakness($0) } ?? false
    }

    private static func withoutWeakness(_ tag: [UInt8]) -> ArraySlice<UInt8> {
        tag.starts(with: [UInt8(ascii: "W"), UInt8(ascii: "/")]) ? tag[2...] : tag[...]
    }

    /// The part between the quotes, or all of a tag without them; `nil` if it is not a tag.
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
