import HTTPCore

/// A server as given on the command line: `example.com`, `example.com:8443`, `[::1]:8443`, or an
/// https URL, whose path is ignored.
package struct PeerAddress: Hashable, Sendable, CustomStringConvertible {
    /// The host name in lower case, or an IP address without brackets.
    package var host: String
    package var port: UInt16

    /// Parses a server. The result is `nil` if the text is not a host with an optional port.
    package init?(_ text: String) {
        var rest = Substring(text.lowercasedASCII)
        if let scheme = rest.firstRange(of: "://") {
            guard rest[..<scheme.lowerBound] == "https" else { return nil }
            rest = rest[scheme.upperBound...].prefix { !"/?#".contains($0) }
        }
        var port: UInt16 = 443
        if let colon = rest.lastIndex(of: ":"),
            rest.last != "]" && rest.firstIndex(of: ":") == colon
                || rest.prefix(upTo: colon).last == "]"
        {
            let digits = rest[rest.index(after: colon)...]
            guard digits.allSatisfy({ $0.isASCII && $0.isNumber }), let number = UInt16(digits),
                number > 0
            else { return nil }
            port = number
            rest = rest[..<colon]
        }
        if rest.first == "[", rest.last == "]" { rest = rest.dropFirst().dropLast() }
        if rest.last == "." { rest = rest.dropLast() }
        let isAddress = IPAddress(literal: rest.utf8.span) != nil
        guard isAddress || PeerAddress.isName(rest) else { return nil }
        host = String(rest)
        self.port = port
    }

    private static func isName(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count <= 253
            && text.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.allSatisfy {
                        $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == "_")
                    }
            }
    }

    /// The host, in brackets if it needs them, and the port.
    package var description: String { Self.text(host: host, port: port) }

    /// A host, in brackets if it needs them, and a port.
    package static func text(host: String, port: UInt16) -> String {
        HostText.text(host, port: port)
    }
}
