import CInternationalNames
import HTTPCore

/// Converts internationalized host names to A-labels (RFC 5890) for lookup and sending, after the
/// mapping that browsers apply (UTS 46, non-transitional).
enum InternationalName {
    /// Returns an authority with its host in A-labels, or `nil` if the host is not valid.
    ///
    /// - Parameter text: The authority, with characters outside ASCII percent-encoded as UTF-8 (RFC
    ///   3986 section 3.2.2).
    static func authority(_ text: String) -> String? {
        let percent = UInt8(ascii: "%")
        guard text.utf8.contains(percent) else { return text }
        let start = text.utf8.lastIndex(of: UInt8(ascii: "@")).map { text.utf8.index(after: $0) }
        let rest = text[(start ?? text.startIndex)...].utf8
        let end = rest.lastIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
        let host = rest[..<end]
        // IPv6 addresses have a percent sign before their zone.
        guard host.contains(percent), host.first != UInt8(ascii: "[") else { return text }
        let bytes = decoded(host)
        guard bytes.contains(where: { $0 >= 0x80 }) else { return text }
        guard let name = String(validating: bytes, as: UTF8.self), let labels = labels(of: name)
        else { return nil }
        return text[..<host.startIndex] + labels + text[host.endIndex...]
    }

    /// Decodes percent-encoded bytes outside ASCII.
    private static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            let digits = String(Substring(rest.prefix(2)))
            if byte == UInt8(ascii: "%"), let value = UInt8(digits, radix: 16),
                value >= 0x80
            {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }

    /// Returns `nil` if the name is not valid, or contains characters with a meaning in URIs.
    private static func labels(of name: String) -> String? {
        var found: UnsafeMutablePointer<UInt8>?
        let code = idn2_lookup_u8(name, &found, pinfold_IDN2_LOOKUP)
        defer { idn2_free(found) }
        guard code == IDN2_OK.rawValue, let found else { return nil }
        let labels = String(cString: found)
        let isName = labels.utf8.allSatisfy { byte in
            ASCII.isDigit(byte) || ASCII.isLetter(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
        }
        return isName && !labels.isEmpty ? labels : nil
    }
}
