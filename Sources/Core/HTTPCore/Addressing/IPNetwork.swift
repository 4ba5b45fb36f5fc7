/// A network in CIDR form, or a single address (a prefix of full length).
///
/// A network of IPv4-mapped addresses is the IPv4 network, and ``contains(_:)`` treats a mapped
/// address as its IPv4 equivalent. Otherwise the families are separate: `::/0` contains no IPv4
/// address and `0.0.0.0/0` no IPv6 one.
public struct IPNetwork: Hashable, Sendable {
    /// The network's first address; never a mapped one.
    public let address: IPAddress
    /// How many leading bits are fixed: 0...32 for IPv4, 0...128 for IPv6.
    public let prefixLength: Int

    /// Why a text is not a network.
    public enum ParseError: Error, Hashable, Sendable {
        /// The part before the slash is not a literal address.
        case badAddress
        /// The part after the slash is not a decimal number without leading zeros within the range
        /// that the address family allows.
        case badPrefixLength
        /// Bits after the prefix are set, so that it is unclear what was meant. `suggestion` is the
        /// network with these bits cleared.
        case hostBitsSet(suggestion: IPNetwork)
    }

    /// The network of all addresses that share the first `prefixLength` bits of `address`; bits
    /// after the prefix are cleared. `nil` if the address family has fewer bits.
    public init?(masking address: IPAddress, prefixLength: Int) {
        var address = address
        var prefixLength = prefixLength
        if address.family == .v6, address.unmapped.family == .v4, prefixLength >= 96,
            prefixLength <= 128
        {
            address = address.unmapped
            prefixLength -= 96
        }
        switch address {
        case .v4(let value):
            guard (0...32).contains(prefixLength) else { return nil }
            self.address = .v4(value & IPNetwork.mask32(prefixLength))
        case .v6(let high, let low):
            guard (0...128).contains(prefixLength) else { return nil }
            self.address = .v6(
                high & IPNetwork.mask64(prefixLength), low & IPNetwork.mask64(prefixLength - 64))
        }
        self.prefixLength = prefixLength
    }

    /// The network that contains only `address`.
    public init(_ address: IPAddress) {
        self.address = address.unmapped
        self.prefixLength = address.unmapped.family == .v4 ? 32 : 128
    }

    /// Reads `10.0.0.0/8`, `fc00::/7`, or a plain address.
    public init(parsing text: some StringProtocol) throws(ParseError) {
        let text = Substring(text)
        guard let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) else {
            guard let address = IPAddress(text) else { throw .badAddress }
            self.init(address)
            return
        }
        guard let address = IPAddress(text[..<slash]) else { throw .badAddress }
        guard let length = IPNetwork.length(text[text.utf8.index(after: slash)...]),
            let network = IPNetwork(masking: address, prefixLength: length)
        else { throw .badPrefixLength }
        // A mapped address with a short prefix is compared as written: its ffff is part of the host
        // bits.
        let written = network.address.family == address.family ? address : address.unmapped
        guard network.address == written else {
            throw .hostBitsSet(suggestion: network)
        }
        self = network
    }

    /// As ``init(parsing:)``, but returns `nil` instead of throwing.
    public init?(_ text: some StringProtocol) {
        guard let network = try? IPNetwork(parsing: text) else { return nil }
        self = network
    }

    /// Whether the address is in the network; a mapped address is treated as IPv4.
    public func contains(_ candidate: IPAddress) -> Bool {
        switch (address, candidate.unmapped) {
        case (.v4(let network), .v4(let value)):
            value & IPNetwork.mask32(prefixLength) == network
        case (.v6(let high, let low), .v6(let candidateHigh, let candidateLow)):
            candidateHigh & IPNetwork.mask64(prefixLength) == high
                && candidateLow & IPNetwork.mask64(prefixLength - 64) == low
        case (.v4, .v6), (.v6, .v4):
            false
        }
    }

    // Swift's smart shifts have no undefined results: shifting by the width or more gives zero.
    private static func mask32(_ length: Int) -> UInt32 { ~(UInt32.max >> UInt32(length)) }

    private static func mask64(_ length: Int) -> UInt64 {
        ~(UInt64.max >> UInt64(max(length, 0)))
    }

    private static func length(_ text: Substring) -> Int? {
        let digits = text.utf8
        guard (1...3).contains(digits.count) else { return nil }
        guard digits.count == 1 || digits.first != UInt8(ascii: "0") else { return nil }
        var value = 0
        for byte in digits {
            let digit = byte &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value * 10 + Int(digit)
        }
        return value
    }
}

extension IPNetwork: CustomStringConvertible {
    /// `10.0.0.0/8`; a single address is printed with its full prefix length, too: `127.0.0.1/32`.
    public var description: String { "\(address)/\(prefixLength)" }
}
