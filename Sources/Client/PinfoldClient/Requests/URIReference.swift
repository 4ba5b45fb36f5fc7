import HTTPCore

/// A parsed URI or relative reference (RFC 3986 section 4.1).
struct URIReference: Equatable, Sendable, CustomStringConvertible {
    /// The scheme in lower case, without the colon.
    var scheme: String?
    /// The text between `//` and the path.
    var authority: String?
    var path = ""
    /// The query without `?`.
    var query: String?
    /// The fragment without `#`.
    var fragment: String?

    /// Parses a text. Returns `nil` if it contains control characters, or the scheme or host is not
    /// valid. Characters that are not allowed in a URI (spaces, quotation marks, anything outside
    /// ASCII) are percent-encoded as UTF-8, as in browsers; in the host name, they are converted to
    /// A-labels.
    init?(_ text: String) {
        guard let text = Self.encoded(text) else { return nil }
        // All characters are single bytes from here on.
        let slash = UInt8(ascii: "/")
        var rest = text[...].utf8
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            fragment = Self.text(rest[hash...].dropFirst())
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = Self.text(rest[mark...].dropFirst())
            rest = rest[..<mark]
        }
        if let colon = rest.firstIndex(of: UInt8(ascii: ":")), !rest[..<colon].contains(slash) {
            guard let scheme = Self.scheme(Substring(rest[..<colon])) else { return nil }
            self.scheme = scheme
            rest = rest[colon...].dropFirst()
        }
        if rest.starts(with: [slash, slash]) {
            rest = rest.dropFirst(2)
            let end = rest.firstIndex(of: slash) ?? rest.endIndex
            guard let authority = InternationalName.authority(Self.text(rest[..<end])) else {
                return nil
            }
            self.authority = authority
            rest = rest[end...]
        }
        path = Self.text(rest)
    }

    /// Parses bytes that need not be UTF-8. Bytes that are not allowed in a URI are
    /// percent-encoded.
    init?(_ bytes: [UInt8]) {
        guard !Self.hasControl(bytes) else { return nil }
        let text = PercentCoding.encode(bytes, mayStand: Self.isAllowed)
        self.init(String(decoding: text, as: UTF8.self))
    }

    private static func text(_ bytes: Substring.UTF8View) -> String { String(Substring(bytes)) }

    /// A text that may be a URI, for use in messages: anything before `@` in its authority is
    /// replaced by `***`, even if the URI is malformed.
    static func withoutCredentials(_ text: String) -> String {
        var start = text.startIndex
        if let slashes = text.firstRange(of: "//"),
            !text[..<slashes.lowerBound].contains(where: { "/?#@".contains($0) })
        {
            start = slashes.upperBound
        }
        let end = text[start...].firstIndex { "/?#".contains($0) } ?? text.endIndex
        guard let sign = text[start..<end].lastIndex(of: "@") else { return text }
        return text[..<start] + "***" + text[sign...]
    }

    /// Whether a text contains only characters that are allowed in a URI.
    static func isEncoded(_ text: String) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isAllowed) }
            ?? text.utf8.allSatisfy(isAllowed)
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"),
            UInt8(ascii: "\\"), UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "{"),
            UInt8(ascii: "|"), UInt8(ascii: "}"):
            false
        default: true
        }
    }

    private static func encoded(_ text: String) -> String? {
        if isEncoded(text) { return text }
        if hasControl(text.utf8) { return nil }
        return String(decoding: PercentCoding.encode(text.utf8, mayStand: isAllowed), as: UTF8.self)
    }

    private static func hasControl(_ bytes: some Sequence<UInt8>) -> Bool {
        bytes.contains { $0 < 0x20 || $0 == 0x7F }
    }

    /// Returns the scheme if it is valid (RFC 3986 section 3.1).
    private static func scheme(_ text: Substring) -> String? {
        let isScheme = text.utf8.enumerated().allSatisfy { index, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                index > 0
            default: false
            }
        }
        return isScheme && !text.isEmpty ? text.lowercasedASCII : nil
    }

    /// Resolves the reference against a base URI (RFC 3986 section 5.2.2).
    func resolved(against base: URIReference) -> URIReference {
        var result = self
        guard scheme == nil else {
            result.path = Self.withoutDots(path)
            return result
        }
        result.scheme = base.scheme
        guard authority == nil else {
            result.path = Self.withoutDots(path)
            return result
        }
        result.authority = base.authority
        if path.isEmpty {
            result.path = base.path
            if query == nil { result.query = base.query }
        } else if path.hasPrefix("/") {
            result.path = Self.withoutDots(path)
        } else {
            result.path = Self.withoutDots(base.merged(with: path))
        }
        return result
    }

    /// Merges paths (RFC 3986 section 5.2.3).
    private func merged(with relative: String) -> String {
        if authority != nil, path.isEmpty { return "/" + relative }
        guard let slash = path.lastIndex(of: "/") else { return relative }
        return path[...slash] + relative
    }

    /// Removes the segments `.` and `..` (RFC 3986 section 5.2.4).
    private static func withoutDots(_ path: String) -> String {
        guard path.contains(".") else { return path }
        var kept: [Substring] = []
        let isAbsolute = path.hasPrefix("/")
        let segments = path.split(separator: "/", omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".":
                if isLast { kept.append("") }
            case "..":
                // Never removes the empty segment before the first slash.
                if kept.count > (isAbsolute ? 1 : 0) { kept.removeLast() }
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        let text = kept.joined(separator: "/")
        return isAbsolute && !text.hasPrefix("/") ? "/" + text : text
    }

    var description: String {
        var text = scheme.map { "\($0):" } ?? ""
        if let authority { text += "//\(authority)" }
        text += path
        if let query { text += "?\(query)" }
        if let fragment { text += "#\(fragment)" }
        return text
    }
}
