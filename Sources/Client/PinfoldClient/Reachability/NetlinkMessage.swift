/// The kernel's messages about links, addresses and routes (rtnetlink(7)) as bytes: a header of 16
/// bytes, a fixed part that depends on the type, and attributes, each aligned to four bytes.
/// Numbers are in the machine's byte order, addresses in network byte order.
enum NetlinkMessage: Hashable, Sendable {
    /// A link was added or has changed (RTM_NEWLINK).
    case link(Link)
    /// A link was removed (RTM_DELLINK).
    case linkGone(index: Int32)
    /// An address was added or removed (RTM_NEWADDR, RTM_DELADDR).
    case address
    /// A route was added, or is the reply to a request (RTM_NEWROUTE).
    case route(Route)
    /// A route was removed (RTM_DELROUTE).
    case routeGone
    /// The system's error number, or 0 for an acknowledgement (NLMSG_ERROR).
    case error(Int32)
    /// The end of a reply in several messages (NLMSG_DONE).
    case done
    /// Messages were lost (NLMSG_OVERRUN).
    case overrun
    /// A message of another type.
    case other(type: UInt16)

    /// A network interface.
    struct Link: Hashable, Sendable {
        var index: Int32
        /// `ARPHRD_…` of <net/if_arp.h>.
        var hardwareType: UInt16
        /// `IFF_…` of netdevice(7).
        var flags: UInt32
        var name: String

        /// Whether frames can be sent and received: the link is up and has a carrier.
        var isRunning: Bool { flags & 0x1 != 0 && flags & 0x40 != 0 }
    }

    /// A route.
    struct Route: Hashable, Sendable {
        /// `RTN_…`: 1 for unicast, 2 for one of this machine's own addresses.
        var type: UInt8
        /// The index of the outgoing interface.
        var interface: Int32?

        /// Whether packets can use the route: it is not blackhole, unreachable, prohibit or throw.
        var isUsable: Bool { (1...5).contains(type) }
    }

    /// Parses the messages in a datagram. Throws if a message is truncated or malformed.
    static func parse(_ bytes: [UInt8]) throws(NetlinkError) -> [NetlinkMessage] {
        var found: [NetlinkMessage] = []
        var start = 0
        while start < bytes.count {
            guard let length = bytes.number(UInt32.self, at: start), length >= 16,
                Int(length) <= bytes.count - start,
                let type = bytes.number(UInt16.self, at: start + 4)
            else { throw .malformed }
            found.append(try message(type, bytes[(start + 16)..<(start + Int(length))]))
            start += (Int(length) + 3) & ~3
        }
        return found
    }

    private static func message(
        _ type: UInt16, _ content: ArraySlice<UInt8>
    ) throws(NetlinkError) -> NetlinkMessage {
        let bytes = Array(content)
        switch type {
        case 2:
            guard let code = bytes.number(Int32.self, at: 0), code != .min else {
                throw .malformed
            }
            return .error(-code)
        case 3: return .done
        case 4: return .overrun
        case 16, 17: return try link(bytes, isGone: type == 17)
        case 20, 21: return .address
        case 24:
            guard bytes.count >= 12 else { throw .malformed }
            var route = Route(type: bytes[7])
            try attributes(bytes, from: 12) { kind, value in
                // RTA_OIF
                if kind == 4 { route.interface = value.number(Int32.self, at: 0) }
            }
            return .route(route)
        case 25: return .routeGone
        default: return .other(type: type)
        }
    }

    private static func link(
        _ bytes: [UInt8], isGone: Bool
    ) throws(NetlinkError) -> NetlinkMessage {
        guard bytes.count >= 16, let hardwareType = bytes.number(UInt16.self, at: 2),
            let index = bytes.number(Int32.self, at: 4),
            let flags = bytes.number(UInt32.self, at: 8)
        else { throw .malformed }
        if isGone { return .linkGone(index: index) }
        var link = Link(index: index, hardwareType: hardwareType, flags: flags, name: "")
        try attributes(bytes, from: 16) { kind, value in
            // IFLA_IFNAME, with a terminating zero
            if kind == 3 { link.name = String(decoding: value.prefix { $0 != 0 }, as: UTF8.self) }
        }
        return .link(link)
    }

    private static func attributes(
        _ bytes: [UInt8], from first: Int, _ take: (UInt16, [UInt8]) -> Void
    ) throws(NetlinkError) {
        var start = first
        while start < bytes.count {
            guard let length = bytes.number(UInt16.self, at: start), length >= 4,
                Int(length) <= bytes.count - start,
                let kind = bytes.number(UInt16.self, at: start + 2)
            else { throw .malformed }
            // Without the flags for nested attributes and for network byte order.
            take(kind & 0x3FFF, Array(bytes[(start + 4)..<(start + Int(length))]))
            start += (Int(length) + 3) & ~3
        }
    }
}

/// Requests to the kernel.
enum NetlinkRequest {
    /// Asks for the route to an address (RTM_GETROUTE).
    ///
    /// - Parameter address: The 4 or 16 bytes of the address.
    static func route(to address: [UInt8], sequence: UInt32) -> [UInt8] {
        let family: UInt8 = address.count == 4 ? 2 : 10
        var content = [family, UInt8(address.count * 8)] + [UInt8](repeating: 0, count: 10)
        // RTA_DST
        content += (UInt16(address.count) + 4).bytes + UInt16(1).bytes + address
        return message(type: 26, content, sequence)
    }

    /// Asks for the properties of a link (RTM_GETLINK).
    static func link(_ index: Int32, sequence: UInt32) -> [UInt8] {
        let content: [UInt8] =
            [0, 0, 0, 0] + UInt32(bitPattern: index).bytes + [UInt8](repeating: 0, count: 8)
        return message(type: 18, content, sequence)
    }

    private static func message(
        type: UInt16, _ content: [UInt8], _ sequence: UInt32
    ) -> [UInt8] {
        // NLM_F_REQUEST; the kernel's port is 0.
        UInt32(content.count + 16).bytes + type.bytes + UInt16(1).bytes + sequence.bytes
            + UInt32(0).bytes + content
    }
}

/// An error in communicating with the kernel.
public enum NetlinkError: Error, Hashable, Sendable {
    /// A message does not follow rtnetlink(7).
    case malformed
    /// The system's error number.
    case system(Int32)
    /// The text is not an IP address.
    case noAddress
}

extension FixedWidthInteger {
    /// The bytes in the machine's byte order.
    var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}

extension [UInt8] {
    /// Returns the number at an offset, in the machine's byte order and with any alignment, or
    /// `nil` if the bytes end before it does.
    func number<Number: FixedWidthInteger>(_: Number.Type, at start: Int) -> Number? {
        guard start >= 0, start <= count - MemoryLayout<Number>.size else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: start, as: Number.self) }
    }
}
