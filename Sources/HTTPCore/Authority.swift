/// A host with an optional port (RFC 3986 §3.2.2, §3.2.3), as in targets and Host.
///
/// Stricter than the grammar, because a host that two programs could read differently is a hole:
/// no percent-encoding and no sub-delims in names, labels of 1 to 63 and names of at most 253
/// bytes, no numbers that only `inet_aton` takes for an address (`127.1`, `0x7f000001`), no zone
/// identifiers, no IPvFuture.
struct Authority {
    /// The host without brackets and without a final dot.
    var host: ByteRange
    /// What the host is.
    var kind: HostKind
    /// The port if one is named. A colon without digits names none (RFC 9110 §4.2.3).
    var port: UInt16?

    /// The authority that `range` holds, all of it; nil when it is malformed or empty.
    static func parse(_ bytes: HeadBytes, _ range: ByteRange) -> Authority? {
        let start = Int(range.start)
        let end = Int(range.end)
        guard start < end else { return nil }
        var authority: Authority
        let hostEnd: Int
        if bytes[start] == Byte.openBracket {
            guard let close = bytes.first(Byte.closeBracket, from: start, to: end),
                isIPv6(bytes, from: start &+ 1, to: close)
            else { return nil }
            let host = ByteRange(from: start &+ 1, to: close)
            authority = Authority(host: host, kind: .ipv6, port: nil)
            hostEnd = close &+ 1
        } else {
            guard let name = parseName(bytes, from: start, to: end) else { return nil }
            authority = name.authority
            hostEnd = name.end
        }
        guard hostEnd < end else { return authority }
        guard bytes[hostEnd] == Byte.colon else { return nil }
        guard hostEnd &+ 1 < end else { return authority }
        guard let port = parsePort(bytes, from: hostEnd &+ 1, to: end) else { return nil }
        authority.port = port
        return authority
    }

    /// One to five digits that make 1 to 65535.
    private static func parsePort(_ bytes: HeadBytes, from start: Int, to end: Int) -> UInt16? {
        guard end &- start <= 5 else { return nil }
        var value: UInt32 = 0
        for index in start..<end {
            guard ByteClass.isDigit(bytes[index]) else { return nil }
            value = value &* 10 &+ UInt32(bytes[index] &- 0x30)
        }
        return value == 0 ? nil : UInt16(exactly: value)
    }

    /// A registered name or IPv4 address up to `:` or `end`, and where it ends.
    @inline(__always)
    private static func parseName(
        _ bytes: HeadBytes, from start: Int, to end: Int
    ) -> (authority: Authority, end: Int)? {
        var index = start
        var label = start
        while index < end {
            let byte = bytes[index]
            if byte == Byte.dot {
                guard index > label, index &- label <= 63 else { return nil }
                // A final dot ends a fully qualified name and is no label of its own.
                if index &+ 1 == end || bytes[index &+ 1] == Byte.colon { break }
                label = index &+ 1
            } else if byte == Byte.colon {
                break
            } else if !ByteClass.isHostLabel(byte) {
                return nil
            }
            index &+= 1
        }
        guard index > label, index &- label <= 63, index &- start <= 253 else { return nil }
        let hasFinalDot = index < end && bytes[index] == Byte.dot
        var kind = HostKind.name
        if ByteClass.isDigit(bytes[label]), endsInNumber(bytes, from: label, to: index) {
            guard !hasFinalDot, isIPv4(bytes, from: start, to: index) else { return nil }
            kind = .ipv4
        }
        let host = ByteRange(from: start, to: index)
        return (Authority(host: host, kind: kind, port: nil), hasFinalDot ? index &+ 1 : index)
    }

    /// Whether a last label is a number to anyone: decimal, octal or hexadecimal digits.
    private static func endsInNumber(_ bytes: HeadBytes, from start: Int, to end: Int) -> Bool {
        let isHexadecimal =
            end &- start >= 2 && bytes[start] == 0x30 && bytes[start &+ 1] | 0x20 == 0x78
        for index in (isHexadecimal ? start &+ 2 : start)..<end {
            let byte = bytes[index]
            guard isHexadecimal ? ByteClass.isHexDigit(byte) : ByteClass.isDigit(byte) else {
                return false
            }
        }
        return true
    }

    /// `dec-octet "." dec-octet "." dec-octet "." dec-octet`, no leading zeros (RFC 3986 §3.2.2).
    static func isIPv4(_ bytes: HeadBytes, from start: Int, to end: Int) -> Bool {
        var octets = 0
        var index = start
        while true {
            let octet = index
            var value: UInt32 = 0
            while index < end, ByteClass.isDigit(bytes[index]), index &- octet < 4 {
                value = value &* 10 &+ UInt32(bytes[index] &- 0x30)
                index &+= 1
            }
            guard index > octet, value <= 255, bytes[octet] != 0x30 || index &- octet == 1 else {
                return false
            }
            octets &+= 1
            if index == end { return octets == 4 }
            guard bytes[index] == Byte.dot, octets < 4 else { return false }
            index &+= 1
        }
    }

    /// `IPv6address` (RFC 3986 §3.2.2): up to eight groups of one to four hexadecimal digits, one
    /// `::` for at least one group of zeros, the last two groups possibly as an IPv4 address.
    static func isIPv6(_ bytes: HeadBytes, from start: Int, to end: Int) -> Bool {
        var groups = 0
        var hasGap = false
        var index = start
        guard end &- start >= 2 else { return false }
        if bytes[start] == Byte.colon {
            guard bytes[start &+ 1] == Byte.colon else { return false }
            hasGap = true
            index = start &+ 2
        }
        while index < end {
            let group = index
            while index < end, ByteClass.isHexDigit(bytes[index]), index &- group < 5 {
                index &+= 1
            }
            if index < end, bytes[index] == Byte.dot {
                guard isIPv4(bytes, from: group, to: end) else { return false }
                groups &+= 2
                index = end
                break
            }
            guard index > group, index &- group <= 4 else { return false }
            groups &+= 1
            if index == end { break }
            guard bytes[index] == Byte.colon, index &+ 1 < end else { return false }
            index &+= 1
            if bytes[index] == Byte.colon {
                guard !hasGap else { return false }
                hasGap = true
                index &+= 1
            }
        }
        return hasGap ? groups <= 7 : groups == 8
    }
}
