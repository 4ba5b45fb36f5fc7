import HTTPCore

extension ProxyHeader {
    /// The header as it is sent, before any other byte of the connection.
    ///
    /// Addresses of both families become those of IPv6 (RFC 4291 §2.5.5.2).
    ///
    /// - Parameter hasChecksum: whether a header of version 2 gets a checksum of itself (§2.2.3).
    package func bytes(hasChecksum: Bool = false) -> [UInt8] {
        switch version {
        case .v1: Array(line.utf8)
        case .v2: binary(hasChecksum: hasChecksum)
        }
    }

    private var line: String {
        guard case .client(let source, let destination) = origin else {
            return "PROXY UNKNOWN\r\n"
        }
        let (from, to, family) = Self.ofOneFamily(source.address, destination.address)
        return "PROXY \(family == .v4 ? "TCP4" : "TCP6") \(from) \(to) "
            + "\(source.port) \(destination.port)\r\n"
    }

    private func binary(hasChecksum: Bool) -> [UInt8] {
        var command = ProxyHeaderLayout.Command.local
        var family = ProxyHeaderLayout.Family.unspecified
        var rest: [UInt8] = []
        if case .client(let source, let destination) = origin {
            let (from, to, common) = Self.ofOneFamily(source.address, destination.address)
            command = .proxy
            family = common == .v4 ? .ipv4 : .ipv6
            rest = from.networkBytes + to.networkBytes
            rest += Self.short(source.port) + Self.short(destination.port)
        }
        if hasChecksum, family != .unspecified {
            rest += [ProxyHeaderLayout.checksumType] + Self.short(4) + [0, 0, 0, 0]
        }
        var bytes =
            ProxyHeaderLayout.signature + [command.rawValue, family.rawValue]
            + Self.short(UInt16(rest.count)) + rest
        if hasChecksum, family != .unspecified {
            let checksum = CRC32C.of(bytes)
            bytes.replaceSubrange(
                (bytes.count - 4)...,
                with: Self.short(UInt16(checksum >> 16))
                    + Self.short(UInt16(truncatingIfNeeded: checksum)))
        }
        return bytes
    }

    private static func short(_ value: UInt16) -> [UInt8] {
        [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)]
    }

    private static func ofOneFamily(
        _ one: IPAddress, _ other: IPAddress
    ) -> (IPAddress, IPAddress, IPAddress.Family) {
        let (one, other) = (one.unmapped, other.unmapped)
        if one.family == other.family { return (one, other, one.family) }
        return (mapped(one), mapped(other), .v6)
    }

    private static func mapped(_ address: IPAddress) -> IPAddress {
        if case .v4(let value) = address { .v6(0, 0xffff << 32 | UInt64(value)) } else { address }
    }
}
