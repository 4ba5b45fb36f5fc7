/// An IP address, stored in one or two machine words.
///
/// Equality compares the written form: `::ffff:127.0.0.1` and `127.0.0.1` differ. Everything that
/// makes a decision about an address (``IPNetwork``, ``AddressScope``, ``DestinationRules``)
/// applies ``unmapped`` first, so that a mapped address is not accepted where the IPv4 address is
/// refused.
public enum IPAddress: Hashable, Sendable {
    /// An IPv4 address in host byte order: `127.0.0.1` is `0x7f00_0001`.
    case v4(UInt32)
    /// An IPv6 address: its first and its last eight bytes, each in host byte order.
    case v6(UInt64, UInt64)

    /// The two address families.
    public enum Family: Hashable, Sendable, CaseIterable {
        /// 32-bit addresses.
        case v4
        /// 128-bit addresses.
        case v6
    }

    /// `127.0.0.1`.
    public static let loopbackV4 = IPAddress.v4(0x7f00_0001)
    /// `::1`.
    public static let loopbackV6 = IPAddress.v6(0, 1)

    /// The family of the written form (a mapped address is IPv6).
    @inlinable
    public var family: Family {
        switch self {
        case .v4: .v4
        case .v6: .v6
        }
    }

    /// Reads an address in its strict text form: four decimal parts without leading zeros for IPv4
    /// (never `127.1`, `0177.0.0.1` or `0x7f.1`), RFC 4291 §2.2 for IPv6, without brackets and
    /// without a zone identifier. Returns `nil` for anything else. Does not allocate.
    public init?(bytes: Span<UInt8>) {
        var reader = AddressReader()
        guard let address = reader.address(bytes) else { return nil }
        self = address
    }

    /// ``init(bytes:)`` for memory that is borrowed during the call.
    public init?(bytes: UnsafeRawBufferPointer) {
        let typed = UnsafeBufferPointer(
            start: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), count: bytes.count)
        self.init(bytes: typed.span)
    }

    /// ``init(bytes:)`` for a string's UTF-8.
    public init?(_ text: String) {
        self.init(bytes: text.utf8.span)
    }

    /// ``init(bytes:)`` for part of a string.
    public init?(_ text: Substring) {
        self.init(bytes: text.utf8.span)
    }

    /// Reads the host of a URI if it is a literal (RFC 3986 §3.2.2): `127.0.0.1`, or an IPv6
    /// address in brackets. Returns `nil` for names, for IPv6 without brackets and for `[v1.x]`.
    public init?(host bytes: Span<UInt8>) {
        let count = bytes.count
        guard count >= 2, bytes[0] == UInt8(ascii: "[") else {
            guard let address = IPAddress(bytes: bytes), address.family == .v4 else { return nil }
            self = address
            return
        }
        guard bytes[count - 1] == UInt8(ascii: "]"),
            let address = IPAddress(bytes: bytes.extracting(1..<count - 1)),
            address.family == .v6
        else { return nil }
        self = address
    }

    /// Reads a host that is an address, as it is written in configurations, in certificates and by
    /// people: IPv6 with or without brackets. Returns `nil` for names.
    public init?(literal bytes: Span<UInt8>) {
        guard let address = IPAddress(bytes: bytes) ?? IPAddress(host: bytes) else { return nil }
        self = address
    }

    /// The 4 or 16 bytes of the address, most significant first, as in a certificate's `iPAddress`
    /// (RFC 5280 §4.2.1.6).
    public var networkBytes: [UInt8] {
        switch self {
        case .v4(let value): withUnsafeBytes(of: value.bigEndian) { Array($0) }
        case .v6(let high, let low):
            withUnsafeBytes(of: high.bigEndian) { Array($0) }
                + withUnsafeBytes(of: low.bigEndian) { Array($0) }
        }
    }

    /// The IPv4 address in `::ffff:a.b.c.d`; otherwise the address itself.
    @inlinable
    public var unmapped: IPAddress {
        switch self {
        case .v6(0, let low) where low >> 32 == 0xffff: .v4(UInt32(truncatingIfNeeded: low))
        case .v4, .v6: self
        }
    }

    /// The IPv4 address to which traffic for this IPv6 address is delivered, if the address embeds
    /// one: IPv4-mapped `::ffff:0:0/96` and IPv4-compatible `::/96` (RFC 4291 §2.5.5; not `::` and
    /// `::1`), NAT64 `64:ff9b::/96` (RFC 6052) and 6to4 `2002::/16` (RFC 3056). `nil` for all other
    /// addresses.
    public var embeddedV4: IPAddress? {
        guard case .v6(let high, let low) = self else { return nil }
        let last = UInt32(truncatingIfNeeded: low)
        if high == 0 {
            if low >> 32 == 0xffff { return .v4(last) }
            return low >> 32 == 0 && low > 1 ? .v4(last) : nil
        }
        if high == 0x0064_ff9b_0000_0000, low >> 32 == 0 { return .v4(last) }
        if high >> 48 == 0x2002 { return .v4(UInt32(truncatingIfNeeded: high >> 16)) }
        return nil
    }

    /// Whether one of the IPv4 addresses satisfies a condition to which traffic for this IPv6
    /// address may be delivered: ``embeddedV4``, and for the prefix of local NAT64 gateways,
    /// `64:ff9b:1::/48` (RFC 8215), the address at each of the positions that RFC 6052 §2.2 has for
    /// longer prefixes and this one: which of them applies only the gateway knows. Those that begin
    /// with 0 are none.
    public func embedsV4(where isRight: (IPAddress) -> Bool) -> Bool {
        if let embeddedV4 { return isRight(embeddedV4) }
        guard case .v6(let high, let low) = self, high >> 16 == 0x0064_ff9b_0001 else {
            return false
        }
        // Bits 64 to 71 are no part of an address.
        let bits = UInt128(high) << 64 | UInt128(low << 8)
        for length in [48, 56, 64] {
            // What lies behind that octet has moved by it.
            let address = UInt32(truncatingIfNeeded: bits >> UInt128(96 - length))
            if address >> 24 != 0, isRight(.v4(address)) { return true }
        }
        let last = UInt32(truncatingIfNeeded: low)
        return last >> 24 != 0 && isRight(.v4(last))
    }

    /// These addresses.
    public var embeddedV4s: [IPAddress] {
        var found: [IPAddress] = []
        _ = embedsV4 {
            found.append($0)
            return false
        }
        return found
    }
}

/// A parser for address literals over one span, with its current position.
private struct AddressReader {
    private var position = 0

    /// Reads the whole span as one address.
    mutating func address(_ bytes: Span<UInt8>) -> IPAddress? {
        // 45 bytes is the longest IPv6 form: eight groups of four with an IPv4 tail.
        guard bytes.count >= 2, bytes.count <= 45 else { return nil }
        for index in 0..<min(bytes.count, 5) where bytes[index] == UInt8(ascii: ":") {
            return v6(bytes)
        }
        return v4(bytes).map { .v4($0) }
    }

    /// `dec-octet "." dec-octet "." dec-octet "." dec-octet` (RFC 3986), from the current position
    /// to the end of the span.
    private mutating func v4(_ bytes: Span<UInt8>) -> UInt32? {
        var address: UInt32 = 0
        var octet: UInt32 = 0
        var digits = 0
        var dots = 0
        while position < bytes.count {
            let byte = bytes[position]
            let digit = UInt32(byte &- UInt8(ascii: "0"))
            if digit <= 9 {
                // Some parsers would read a leading zero as octal, others as decimal.
                guard digits == 0 || octet > 0 else { return nil }
                octet = octet &* 10 &+ digit
                guard octet <= 255 else { return nil }
                digits &+= 1
            } else {
                guard byte == UInt8(ascii: "."), digits > 0, dots < 3 else { return nil }
                address = address &<< 8 | octet
                octet = 0
                digits = 0
                dots &+= 1
            }
            position &+= 1
        }
        return digits > 0 && dots == 3 ? address &<< 8 | octet : nil
    }

    private mutating func v6(_ bytes: Span<UInt8>) -> IPAddress? {
        // The groups before "::" (or all of them) and after it, each right-aligned in 128 bits.
        var head = Groups()
        var tail = Groups()
        var compressed = false
        if bytes[0] == UInt8(ascii: ":") {
            guard bytes[1] == UInt8(ascii: ":") else { return nil }
            compressed = true
            position = 2
        }
        while position < bytes.count {
            guard head.count + tail.count < 8 else { return nil }
            let start = position
            guard let group = hexGroup(bytes) else { return nil }
            if position < bytes.count, bytes[position] == UInt8(ascii: ".") {
                position = start
                guard head.count + tail.count <= 6, compressed || head.count == 6,
                    let value = v4(bytes)
                else { return nil }
                compressed ? tail.append(v4: value) : head.append(v4: value)
                break
            }
            compressed ? tail.append(group) : head.append(group)
            guard position < bytes.count else { break }
            guard bytes[position] == UInt8(ascii: ":") else { return nil }
            position += 1
            guard position < bytes.count else { return nil }
            if bytes[position] == UInt8(ascii: ":") {
                guard !compressed else { return nil }
                compressed = true
                position += 1
            }
        }
        if compressed {
            guard head.count + tail.count <= 7 else { return nil }
            let value = head.value << UInt128((8 - head.count) * 16) | tail.value
            return .v6(UInt64(truncatingIfNeeded: value >> 64), UInt64(truncatingIfNeeded: value))
        }
        guard head.count == 8 else { return nil }
        return .v6(
            UInt64(truncatingIfNeeded: head.value >> 64), UInt64(truncatingIfNeeded: head.value))
    }

    /// `1*4HEXDIG`.
    private mutating func hexGroup(_ bytes: Span<UInt8>) -> UInt16? {
        let start = position
        var value: UInt16 = 0
        while position < bytes.count, let digit = ASCII.hexValue(bytes[position]) {
            guard position - start < 4 else { return nil }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return position > start ? value : nil
    }

    private struct Groups {
        var value: UInt128 = 0
        var count = 0

        mutating func append(_ group: UInt16) {
            value = value << 16 | UInt128(group)
            count += 1
        }

        mutating func append(v4: UInt32) {
            value = value << 32 | UInt128(v4)
            count += 2
        }
    }
}
