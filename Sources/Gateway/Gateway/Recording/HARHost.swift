import CInternationalNames
import HTTPCore

/// Which hosts the URL parsers of browsers and of other programs accept (WHATWG URL, section 3.5).
/// Anybody can ask for any host, and one that they refuse may make them refuse the whole file.
enum HARHost {
    /// Whether they accept an authority.
    /// - Parameter authority: `host[:port]` in lower case, without userinfo.
    static func isReadable(_ authority: String) -> Bool {
        let isAddress = authority.hasPrefix("[")
        let host =
            isAddress
            ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        guard authority.hasPrefix(host) else { return false }
        let rest = authority.dropFirst(host.count)
        guard rest.isEmpty || rest.first == ":" && isPort(rest.dropFirst()) else { return false }
        return isAddress ? IPAddress(host: host.utf8.span) != nil : isName(String(host))
    }

    /// An empty one is that of the scheme.
    private static func isPort(_ digits: Substring) -> Bool {
        digits.utf8.allSatisfy(ASCII.isDigit) && (digits.isEmpty || UInt16(digits) != nil)
    }

    private static func isName(_ name: String) -> Bool {
        let isPlain = name.utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || ".-_".utf8.contains($0)
        }
        guard !name.isEmpty, isPlain else { return false }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        // A dot at the end belongs to no label.
        let last = labels.count > 1 && labels.last == "" ? labels[labels.count - 2] : labels.last
        if let last, isNumber(last) { return IPAddress(name) != nil }
        return !labels.contains { $0.hasPrefix("xn--") } || isInternational(name)
    }

    /// Whether a label is a number to them: such a host is an IPv4 address or none.
    private static func isNumber(_ label: Substring) -> Bool {
        guard let first = label.utf8.first, ASCII.isDigit(first) else { return false }
        return label.utf8.allSatisfy(ASCII.isDigit)
            || label.hasPrefix("0x")
                && label.utf8.dropFirst(2).allSatisfy { ASCII.isDigit($0) || 0x61...0x66 ~= $0 }
    }

    // MARK: International names

    /// Whether each A-label (RFC 5890) is one: it can be decoded, and what that yields is a name
    /// that is written so. Some that browsers accept are not taken, such as those with emoji.
    private static func isInternational(_ name: String) -> Bool {
        var found: UnsafeMutablePointer<UInt8>?
        defer { idn2_free(found) }
        guard idn2_lookup_u8(name, &found, pinfold_IDN2_LOOKUP) == IDN2_OK.rawValue else {
            return false
        }
        var decoded: UnsafeMutablePointer<CChar>?
        defer { idn2_free(decoded) }
        guard idn2_to_unicode_8z8z(name, &decoded, 0) == IDN2_OK.rawValue, let decoded else {
            return false
        }
        // The lookup takes letters that only stand for others (UTS 46, "mapped").
        return String(cString: decoded).unicodeScalars.allSatisfy {
            $0.isASCII || !$0.properties.changesWhenNFKCCaseFolded || $0 == "ß" || $0 == "ς"
        }
    }
}
