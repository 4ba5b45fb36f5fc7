/// An address written as a host: what decides that a name is matched as an address, checked against
/// a certificate's IP entries and never sent as SNI (RFC 6066 §3).
///
/// An IPv4-mapped IPv6 address is the IPv4 address that it maps.
package enum IPLiteral: Hashable, Sendable {
    /// An IPv4 address, most significant octet first.
    case v4(UInt32)
    /// The upper and lower 64 bits of an IPv6 address.
    case v6(UInt64, UInt64)

    /// The address that `host` is, or nil for a name: four decimal octets without leading zeros, or
    /// RFC 4291 §2.2 text with or without the brackets of a URI. Zone identifiers are refused.
    package init?(_ host: Span<UInt8>) {
        guard !host.isEmpty, host.count <= IPLiteral.longestText else { return nil }
        if host[0] == UInt8(ascii: "[") {
            guard host.count > 2, host[host.count - 1] == UInt8(ascii: "]") else { return nil }
            self.init(version6: host.extracting(1..<(host.count - 1)))
            return
        }
        for index in host.indices where host[index] == UInt8(ascii: ":") {
            self.init(version6: host)
            return
        }
        guard let address = IPLiteral.version4(host) else { return nil }
        self = .v4(address)
    }

    /// The address that `host` is, or nil for a name.
    init?(text host: String) {
        let bytes = Array(host.utf8)
        self.init(bytes.span)
    }

    /// The longest text form: 45 bytes of `INET6_ADDRSTRLEN` and two brackets.
    private static let longestText = 47

    private static func version4(_ text: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var octets = 0
        var index = 0
        while index < text.count {
            var value: UInt32 = 0
            let start = index
            while index < text.count, case let digit = text[index] &- UInt8(ascii: "0"), digit < 10
            {
                value = value * 10 + UInt32(digit)
                index += 1
                guard index - start <= 3 else { return nil }
            }
            guard index > start, value <= 255 else { return nil }
            if index - start > 1, text[start] == UInt8(ascii: "0") { return nil }
            address = address << 8 | value
            octets += 1
            guard index < text.count else { break }
            guard text[index] == UInt8(ascii: "."), octets < 4, index + 1 < text.count else {
                return nil
            }
            index += 1
        }
        return octets == 4 ? address : nil
    }

    private init?(version6 text: Span<UInt8>) {
        var groups: [UInt16] = []
        var gap: Int?
        var index = 0
        if text.count >= 2, text[0] == UInt8(ascii: ":"), text[1] == UInt8(ascii: ":") {
            gap = 0
            index = 2
        }
        while index < text.count {
            guard groups.count < 8 else { return nil }
            var end = index
            var value: UInt32 = 0
            while end < text.count, let digit = Hexadecimal.value(text[end]) {
                value = value << 4 | UInt32(digit)
                end += 1
                guard end - index <= 4 else { return nil }
            }
            if end < text.count, text[end] == UInt8(ascii: ".") {
                guard groups.count <= 6,
                    let tail = IPLiteral.version4(text.extracting(index..<text.count))
                else { return nil }
                groups.append(UInt16(truncatingIfNeeded: tail >> 16))
                groups.append(UInt16(truncatingIfNeeded: tail))
                index = text.count
                break
            }
            guard end > index else { return nil }
            groups.append(UInt16(truncatingIfNeeded: value))
            index = end
            guard index < text.count else { break }
            guard text[index] == UInt8(ascii: ":"), index + 1 < text.count else { return nil }
            index += 1
            if text[index] == UInt8(ascii: ":") {
                guard gap == nil else { return nil }
                gap = groups.count
                index += 1
            }
        }
        self.init(groups: groups, gap: gap)
    }

    /// Joins the groups of an IPv6 address; `gap` is where `::` stood.
    private init?(groups: [UInt16], gap: Int?) {
        var all = groups
        if let gap {
            guard groups.count < 8 else { return nil }
            all.insert(contentsOf: repeatElement(0, count: 8 - groups.count), at: gap)
        }
        guard all.count == 8 else { return nil }
        let upper = all[0..<4].reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
        let lower = all[4..<8].reduce(UInt64(0)) { $0 << 16 | UInt64($1) }
        if upper == 0, lower >> 32 == 0xFFFF {
            self = .v4(UInt32(truncatingIfNeeded: lower))
        } else {
            self = .v6(upper, lower)
        }
    }

    /// The 4 or 16 bytes of the address, as a certificate's `iPAddress` holds them (RFC 5280
    /// §4.2.1.6).
    package var bytes: [UInt8] {
        switch self {
        case .v4(let address):
            return stride(from: 24, through: 0, by: -8).map {
                UInt8(truncatingIfNeeded: address >> UInt32($0))
            }
        case .v6(let upper, let lower):
            return [upper, lower].flatMap { word in
                stride(from: 56, through: 0, by: -8).map {
                    UInt8(truncatingIfNeeded: word >> UInt64($0))
                }
            }
        }
    }
}
