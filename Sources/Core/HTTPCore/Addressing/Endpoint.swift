/// An address and a port, to listen on or connect to.
public struct Endpoint: Hashable, Sendable {
    /// The address.
    public var address: IPAddress
    /// The port; 0 asks the kernel for a free one when listening.
    public var port: UInt16

    /// Creates an endpoint from an address and a port.
    @inlinable
    public init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Why a text is not an endpoint.
    public enum ParseError: Error, Hashable, Sendable, CaseIterable {
        /// No colon and port after the address.
        case missingPort
        /// A port that is not a decimal number from 0 to 65535 without leading zeros.
        case badPort
        /// An IPv6 address without brackets, so that its port cannot be distinguished from it.
        case missingBrackets
        /// The part before the port is not a literal address.
        case badAddress
    }

    /// Reads `127.0.0.1:80` or `[::1]:80`. Names are not resolved: they are `badAddress`.
    public init(parsing text: some StringProtocol) throws(ParseError) {
        let text = Substring(text)
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else {
            throw .missingPort
        }
        let host = text[..<colon]
        if host.utf8.first == UInt8(ascii: "[") {
            // The last colon is inside the brackets: "[::1]".
            guard host.utf8.last == UInt8(ascii: "]") else { throw .missingPort }
        } else if host.utf8.contains(UInt8(ascii: ":")) {
            throw .missingBrackets
        }
        guard let address = IPAddress(host: host.utf8.span) else { throw .badAddress }
        guard let port = Endpoint.port(text[text.utf8.index(after: colon)...]) else {
            throw .badPort
        }
        self.init(address: address, port: port)
    }

    /// As ``init(parsing:)``, but returns `nil` instead of throwing.
    public init?(_ text: some StringProtocol) {
        guard let endpoint = try? Endpoint(parsing: text) else { return nil }
        self = endpoint
    }

    private static func port(_ text: Substring) -> UInt16? {
        let digits = text.utf8
        guard (1...5).contains(digits.count) else { return nil }
        guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
        var value: UInt32 = 0
        for byte in digits {
            let digit = byte &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + UInt32(digit)
        }
        return UInt16(exactly: value)
    }
}
