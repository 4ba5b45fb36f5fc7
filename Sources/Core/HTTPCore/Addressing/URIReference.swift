/// A URI or a relative reference (RFC 3986 §4.1) in its parts, which are as they are written, but
/// for the scheme, which is in lower case.
package struct URIReference: Hashable, Sendable, CustomStringConvertible {
    /// Without the colon.
    package var scheme: String?
    /// What is between `//` and the path.
    package var authority: String?
    package var path = ""
    /// Without `?`.
    package var query: String?
    /// Without `#`.
    package var fragment: String?

    /// Splits a text (RFC 3986 appendix B). No character of a part is checked but the scheme's.
    ///
    /// - Returns: `nil` if a colon follows something that is not a scheme: no relative reference
    ///   has a colon in its first segment (§4.2).
    package init?(_ text: String) {
        var rest = text[...].utf8
        fragment = Self.cutOff(after: UInt8(ascii: "#"), &rest)
        query = Self.cutOff(after: UInt8(ascii: "?"), &rest)
        let colon = UInt8(ascii: ":")
        if let end = rest.firstIndex(where: { $0 == colon || $0 == Self.slash }),
            rest[end] == colon
        {
            guard let scheme = Self.scheme(rest[..<end]) else { return nil }
            self.scheme = scheme
            rest = rest[end...].dropFirst()
        }
        if rest.starts(with: [Self.slash, Self.slash]) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: Self.slash) ?? rest.endIndex
            authority = String(Substring(rest[..<end]))
            rest = rest[end...]
        }
        path = String(Substring(rest))
    }

    private static let slash = UInt8(ascii: "/")

    /// Takes off what follows the first such byte, and the byte.
    private static func cutOff(
        after byte: UInt8, _ rest: inout Substring.UTF8View
    ) -> String? {
        guard let index = rest.firstIndex(of: byte) else { return nil }
        defer { rest = rest[..<index] }
        return String(Substring(rest[index...].dropFirst()))
    }

    /// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )` (RFC 3986 §3.1).
    private static func scheme(_ text: Substring.UTF8View) -> String? {
        guard let first = text.first, ASCII.isLetter(first),
            text.allSatisfy({
                ASCII.isLetter($0) || ASCII.isDigit($0) || "+-.".utf8.contains($0)
            })
        else { return nil }
        return Substring(text).lowercasedASCII
    }

    /// Resolves the reference against a base URI (RFC 3986 §5.2.2).
    package func resolved(against base: URIReference) -> URIReference {
        var result = self
        if scheme == nil {
            result.scheme = base.scheme
            if authority == nil {
                result.authority = base.authority
                guard !path.isEmpty else {
                    result.path = base.path
                    result.query = query ?? base.query
                    return result
                }
                if path.utf8.first != Self.slash { result.path = base.folder + path }
            }
        }
        result.path = Self.withoutDotSegments(result.path)
        return result
    }

    /// What stands before a relative path (RFC 3986 §5.2.3).
    private var folder: String {
        if authority != nil, path.isEmpty { return "/" }
        let end = path.utf8.lastIndex(of: Self.slash).map { path.utf8.index(after: $0) }
        return String(path[..<(end ?? path.startIndex)])
    }

    /// RFC 3986 §5.2.4; a path that does not begin with a slash does not begin with one afterwards.
    private static func withoutDotSegments(_ path: String) -> String {
        guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
        var kept: [Substring] = []
        // The empty segment before the first slash stays.
        let first = path.utf8.first == slash ? 1 : 0
        let segments = path.utf8.split(separator: slash, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isUp = segment.elementsEqual("..".utf8)
            guard isUp || segment.elementsEqual(".".utf8) else {
                kept.append(Substring(segment))
                continue
            }
            if isUp, kept.count > first { kept.removeLast() }
            if index == segments.count - 1 { kept.append("") }
        }
        return kept.joined(separator: "/")
    }

    /// The text (RFC 3986 §5.3).
    package var description: String {
        var text = scheme.map { "\($0):" } ?? ""
        if let authority { text += "//\(authority)" }
        text += path
        if let query { text += "?\(query)" }
        if let fragment { text += "#\(fragment)" }
        return text
    }
}
