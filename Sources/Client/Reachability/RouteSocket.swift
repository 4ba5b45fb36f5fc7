import CLinux
import HTTPCore

/// A socket by which the kernel tells of changes to links, addresses and routes, and is asked where
/// packets would go. No packet is sent for it.
///
/// Its descriptor is watched for reading; then ``takeChanges()`` says whether to ask again.
public struct RouteSocket: ~Copyable, Sendable {
    /// Does not block; belongs to this value.
    public let descriptor: Int32

    /// Links, addresses and routes of both families (RTMGRP_…).
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
    /// As much as the kernel puts into one datagram.
    private static let datagramBytes = 65_536

    /// In the network namespace of the calling thread.
    public init() throws(NetlinkError) {
        descriptor = try Self.open(groups: Self.groups)
    }

    deinit { close(descriptor) }

    /// Takes what the kernel has told since the last time.
    ///
    /// - Returns: whether anything has changed, or was lost.
    public func takeChanges() throws(NetlinkError) -> Bool {
        var hasChanged = false
        while true {
            do throws(NetlinkError) {
                guard let bytes = try Self.receive(descriptor) else { return hasChanged }
                hasChanged = hasChanged || Self.tellsOfChange(bytes)
            } catch .system(ENOBUFS) {
                // It has told more than there is room for.
                hasChanged = true
            }
        }
    }

    /// Whether a datagram tells of a change; one that cannot be read may have.
    static func tellsOfChange(_ bytes: [UInt8]) -> Bool {
        guard let messages = try? NetlinkMessage.parse(bytes) else { return true }
        return messages.contains(where: isChange)
    }

    private static func isChange(_ message: NetlinkMessage) -> Bool {
        switch message {
        case .link, .linkGone, .address, .route, .routeGone, .overrun: true
        case .error, .done, .other: false
        }
    }

    /// Whether packets to an address would leave this machine now, and by what.
    ///
    /// - Parameter address: IPv4 or IPv6, without brackets.
    public static func status(of address: String) throws(NetlinkError) -> NetworkStatus {
        guard let address = IPAddress(address) else { throw .noAddress }
        return try status(of: address)
    }

    /// Whether this machine has a way to the Internet: to the addresses of a.root-servers.net.
    public static func statusOfInternet() throws(NetlinkError) -> NetworkStatus {
        .best(of: [
            try status(of: .v4(0xC629_0004)),
            try status(of: .v6(0x2001_0503_BA3E_0000, 0x0000_0000_0002_0030)),
        ])
    }

    /// ``status(of:)`` for an address that has been read.
    package static func status(of address: IPAddress) throws(NetlinkError) -> NetworkStatus {
        let bytes: [UInt8] =
            switch address.unmapped {
            case .v4(let word): word.bigEndian.bytes
            case .v6(let first, let second): first.bigEndian.bytes + second.bigEndian.bytes
            }
        let socket = try open(groups: 0)
        defer { close(socket) }
        guard
            case .route(let route) = try ask(socket, NetlinkQuestion.route(to: bytes, sequence: 1)),
            route.isUsable, let interface = route.interface,
            case .link(let link) = try ask(socket, NetlinkQuestion.link(interface, sequence: 2)),
            link.isRunning
        else { return .notReachable }
        let type = deviceType(of: link.name)
        return .reachable(
            InterfaceKind(hardwareType: link.hardwareType, deviceType: type, name: link.name))
    }

    /// The answer to a question; an error where it says that there is no such way.
    private static func ask(
        _ socket: Int32, _ question: [UInt8]
    ) throws(NetlinkError) -> NetlinkMessage {
        while send(socket, question, question.count, 0) < 0 {
            guard __errno_location().pointee == EINTR else { throw lastError }
        }
        // The kernel has answered before the call returns.
        guard let bytes = try receive(socket), let answer = try NetlinkMessage.parse(bytes).first
        else { throw .system(EAGAIN) }
        if case .error(let code) = answer, !meansNoWay(code) { throw .system(code) }
        return answer
    }

    /// Whether the kernel's error number says that there is no such way; EOPNOTSUPP is that of a
    /// kernel without the address's family.
    static func meansNoWay(_ code: Int32) -> Bool {
        switch code {
        case ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENODEV, EAFNOSUPPORT, EOPNOTSUPP: true
        default: false
        }
    }

    private static func open(groups: UInt32) throws(NetlinkError) -> Int32 {
        // AF_NETLINK, NETLINK_ROUTE
        let type = Int32(SOCK_RAW.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(16, type, 0)
        guard descriptor >= 0 else { throw lastError }
        // struct sockaddr_nl: the family, padding, a port of the kernel's choice, groups.
        let address = UInt16(16).bytes + [0, 0, 0, 0, 0, 0] + groups.bytes
        let code = address.withUnsafeBytes {
            bind(
                descriptor, $0.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                socklen_t($0.count))
        }
        guard code == 0 else {
            let error = lastError
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// The next datagram of the kernel's, cut to `datagramBytes`; nil: there is none.
    private static func receive(_ socket: Int32) throws(NetlinkError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: datagramBytes)
        while true {
            var sender = [UInt8](repeating: 0, count: 12)
            var length = socklen_t(sender.count)
            let count = sender.withUnsafeMutableBytes {
                recvfrom(
                    socket, &bytes, datagramBytes, 0,
                    $0.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
            }
            if count < 0 {
                let error = lastError
                switch error {
                case .system(EINTR): continue
                case .system(EAGAIN): return nil
                default: throw error
                }
            }
            // Other processes may write to it, too.
            guard sender.number(UInt32.self, at: 4) == 0 else { continue }
            return Array(bytes[..<count])
        }
    }

    private static func deviceType(of name: String) -> String? {
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return deviceType(inFolder: "/sys/class/net/\(name)")
    }

    /// The device's type, by the folder in which the kernel describes it; nil: it does not say.
    static func deviceType(inFolder folder: String) -> String? {
        // Some drivers of wireless networks say it by these alone.
        for sign in ["phy80211", "wireless"] where access("\(folder)/\(sign)", F_OK) == 0 {
            return "wlan"
        }
        let file = open_with_mode("\(folder)/uevent", O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(file, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return InterfaceKind.deviceType(uevent: String(decoding: bytes[..<count], as: UTF8.self))
    }

    private static var lastError: NetlinkError { .system(__errno_location().pointee) }
}
