import HTTPCore

extension URIReference {
    /// Parses a text. Returns `nil` if it contains control characters, or the scheme or host is not
    /// valid. Characters that are not allowed in a URI (spaces, quotation marks, anything outside
    /// ASCII) are percent-encoded as UTF-8, as in browsers; in the host name, they are converted to
    /// A-labels.
    init?(encoding text: String) {
        guard let text = Self.encoded(text) else { return nil }
        self.init(text)
        guard let authority else { return }
        guard let encoded = InternationalName.authority(authority) else { return nil }
        self.authority = encoded
    }

    /// Parses bytes that need not be UTF-8. Bytes that are not allowed in a URI are
    /// percent-encoded.
    init?(encoding bytes: [UInt8]) {
        guard !Self.hasControl(bytes) else { return nil }
        let text = PercentCoding.encode(bytes, mayStand: Self.isAllowed)
        self.init(encoding: String(decoding: text, as: UTF8.self))
    }

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
}
