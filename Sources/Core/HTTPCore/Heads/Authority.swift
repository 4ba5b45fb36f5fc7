/// A host with an optional port (RFC 3986 §3.2.2, §3.2.3), as in targets and Host.
///
/// Stricter than the grammar, because a host that two programs could read differently is a security
/// hole: names have at most 253 bytes; numbers that only `inet_aton` accepts as an address
/// (`127.1`, `0x7f000001`), zone identifiers and IPvFuture are refused. Every other registered name
/// is kept as it is, percent-encoding included: `ex%61mple.com` is not `example.com` here, does not
/// match anything configured for it, and is not a domain name, so it is never looked up.
struct Authority {
    /// The host without brackets and without a trailing dot.
    var host: ByteRange
    /// The kind of host.
    var kind: HostKind
    /// The port, if given. A colon without digits gives none (RFC 9110 §4.2.3).
    var port: UInt16?

    /// Parses all of `range` as an authority; `nil` if it is malformed or empty.
    @inline(__always)
    static func parse(_ bytes: HeadBytes, _ range: ByteRange) -> Authority? {
        let end = Int(range.end)
        guard let found = scan(bytes, from: Int(range.start), to: end), found.end == end else {
            return nil
        }
        return found.authority
    }

    /// Parses the authority that begins at `start`, and returns where it ends: at the first byte
    /// that cannot be part of it, or at `limit`. `nil` if there is none or it is malformed up to
    /// there.
    static func scan(
        _ bytes: HeadBytes, from start: Int, to limit: Int
    ) -> (authority: Authority, end: Int)? {
        guard start < limit else { return nil }
        let host =
            bytes[start] == Byte.openBracket
            ? scanIPv6(bytes, from: start, to: limit) : scanName(bytes, from: start, to: limit)
        guard var found = host else { return nil }
        if found.end < limit, bytes[found.end] == Byte.colon {
            found.end &+= 1
            let digits = found.end
            var value: UInt32 = 0
            while found.end < limit, found.end &- digits < 6, ASCII.isDigit(bytes[found.end]) {
                value = value &* 10 &+ UInt32(bytes[found.end] &- 0x30)
                found.end &+= 1
            }
            if found.end > digits {
                guard found.end &- digits <= 5, value > 0, let port = UInt16(exactly: value) else {
                    return nil
                }
                found.authority.port = port
            }
        }
        return found
    }

    private static func scanIPv6(
        _ bytes: HeadBytes, from start: Int, to limit: Int
    ) -> (authority: Authority, end: Int)? {
        guard let close = bytes.first(Byte.closeBracket, from: start, to: limit),
            IPAddress(bytes: bytes.bytes(from: start &+ 1, to: close))?.family == .v6
        else { return nil }
        let host = ByteRange(from: start &+ 1, to: close)
        return (Authority(host: host, kind: .ipv6, port: nil), close &+ 1)
    }

    /// Parses a domain name or IPv4 address, otherwise any registered name, and returns where it
    /// ends.
    @inline(__always)
    private static func scanName(
        _ bytes: HeadBytes, from start: Int, to limit: Int
    ) -> (authority: Authority, end: Int)? {
        var index = start
        var label = start
        var hasFinalDot = false
        while true {
            while index < limit, ByteClass.isHostLabel(bytes[index]) { index &+= 1 }
            guard index > label else {
                return RegisteredName.scan(bytes, from: start, to: limit)
            }
            guard index < limit, bytes[index] == Byte.dot else { break }
            // A trailing dot ends a fully qualified name and does not begin another label.
            let next = index &+ 1
            if next == limit || endsHost(bytes[next]) {
                hasFinalDot = true
                break
            }
            label = next
            index = next
        }
        guard hasFinalDot || index == limit || endsHost(bytes[index]) else {
            return RegisteredName.scan(bytes, from: start, to: limit)
        }
        guard index &- start <= 253 else { return nil }
        var kind = HostKind.name
        if ASCII.isDigit(bytes[label]), endsInNumber(bytes, from: label, to: index) {
            guard !hasFinalDot,
                IPAddress(bytes: bytes.bytes(from: start, to: index))?.family == .v4
            else { return nil }
            kind = .ipv4
        }
        let host = ByteRange(from: start, to: index)
        return (Authority(host: host, kind: kind, port: nil), hasFinalDot ? index &+ 1 : index)
    }

    /// Whether a byte may follow a host in an authority or target.
    @inline(__always)
    private static func endsHost(_ byte: UInt8) -> Bool {
        byte == Byte.colon || byte == Byte.slash || byte == Byte.question
    }

    /// Whether some program would read the last label as a number: decimal, octal or hexadecimal.
    fileprivate static func endsInNumber(_ bytes: HeadBytes, from start: Int, to end: Int) -> Bool {
        let isHexadecimal =
            end &- start >= 2 && bytes[start] == 0x30 && bytes[start &+ 1] | 0x20 == 0x78
        for index in (isHexadecimal ? start &+ 2 : start)..<end {
            let byte = bytes[index]
            guard isHexadecimal ? ByteClass.isHexDigit(byte) : ASCII.isDigit(byte) else {
                return false
            }
        }
        return true
    }
}

/// `reg-name = *( unreserved / pct-encoded / sub-delims )` (RFC 3986 §3.2.2), for the few names
/// that do not consist of domain name labels.
private enum RegisteredName {
    /// Parses the name that begins at `start`, and returns where it ends; `nil` if there is none,
    /// it is too long, or its last label is a number (see ``Authority``).
    @inline(never)
    static func scan(
        _ bytes: HeadBytes, from start: Int, to limit: Int
    ) -> (authority: Authority, end: Int)? {
        var index = start
        var label = start
        while index < limit {
            if bytes[index] == Byte.percent {
                guard index &+ 2 < limit, ByteClass.isHexDigit(bytes[index &+ 1]),
                    ByteClass.isHexDigit(bytes[index &+ 2])
                else { return nil }
                index &+= 3
            } else if ByteClass.isRegisteredName(bytes[index]) {
                if bytes[index] == Byte.dot { label = index &+ 1 }
                index &+= 1
            } else {
                break
            }
        }
        guard index > start, index &- start <= 253 else { return nil }
        if label < index, ASCII.isDigit(bytes[label]),
            Authority.endsInNumber(bytes, from: label, to: index)
        {
            return nil
        }
        let host = ByteRange(from: start, to: index)
        return (Authority(host: host, kind: .name, port: nil), index)
    }
}
