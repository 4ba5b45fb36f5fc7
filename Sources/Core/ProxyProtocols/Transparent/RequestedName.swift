import HTTPCore

/// The name that a TLS client asks for in clear text (RFC 6066 §3), as the host of a CONNECT.
package enum RequestedName {
    /// Whether a name may be one: what no resolver would look up, or something else than a name,
    /// must not become a part of a request. An address is never a name there.
    package static func isValid(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...255).contains(bytes.count), IPAddress(literal: bytes.span) == nil else {
            return false
        }
        return bytes.allSatisfy { byte in
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte == UInt8(ascii: "-")
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
        }
    }
}
