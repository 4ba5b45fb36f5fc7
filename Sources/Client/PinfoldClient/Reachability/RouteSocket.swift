import CLinux
import Files
import HTTPCore

/// A socket on which the kernel reports changes to links, addresses and routes, and queries about
/// routes. No packets are sent.
///
/// Watch ``descriptor`` for reading, then call ``takeChanges()`` to find out whether to query
/// again.
package struct RouteSocket: ~Copyable, Sendable {
    /// The non-blocking descriptor. It is owned by this value.
    package let descriptor: Int32

    /// Links, addresses and routes of both address families (RTMGRP_…).
    private static let groups: UInt32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400
    /// The maximum size of a datagram from the kernel.
    private static let datagramBytes = 65_536

    /// Opens a socket in the network namespace of the calling thread.
    package init() throws(NetlinkError) {
        descriptor = try Self.open(groups: Self.groups)
    }

    deinit { close(descriptor) }

    /// Reads what the kernel has reported since the last call.
    ///
    /// - Returns: Whether anything has changed, or reports were lost.
    package func takeChanges() throws(NetlinkError) -> Bool {
        var hasChanged = false
        while true {
            do throws(NetlinkError) {
                guard let bytes = try Self.receive(descriptor) else { return hasChanged }
                hasChanged = hasChanged || Self.reportsChange(bytes)
            } catch .system(ENOBUFS) {
                // There were more reports than the buffer can hold.
                hasChanged = true
            }
        }
    }

    /// Whether a datagram reports a change. A datagram that cannot be parsed counts as one.
    static func reportsChange(_ bytes: [UInt8]) -> Bool {
        guard let messages = try? NetlinkMessage.parse(bytes) else { return true }
        return messages.contains(where: isChange)
    }

    private static func isChange(_ message: NetlinkMessage) -> Bool {
        switch message {
        case .link, .linkGone, .address, .route, .routeGone, .overrun: true
        case .error, .done, .other: false
        }
    }

    /// Whether packets to an address would leave this machine now, and through what.
    ///
    /// - Parameter address: An IPv4 or IPv6 address, without brackets.
    package static func status(of address: String) throws(NetlinkError) -> NetworkStatus {
        guard let address = IPAddress(address) else { throw .noAddress }
        return try status(of: address)
    }

    /// Whether this machine has a route to the Internet: to the addresses of a.root-servers.net.
    package static func statusOfInternet() throws(NetlinkError) -> NetworkStatus {
        .best(of: [
            try status(of: .v4(0xC629_0004)),
            try status(of: .v6(0x2001_0503_BA3E_0000, 0x0000_0000_0002_0030)),
        ])
    }

    /// ``status(of:)`` for a parsed address.
    package static func status(of address: IPAddress) throws(NetlinkError) -> NetworkStatus {
        let bytes: [UInt8] =
            switch address.unmapped {
            case .v4(let word): word.bigEndian.bytes
            case .v6(let first, let second): first.bigEndian.bytes + second.bigEndian.bytes
            }
        let socket = try open(groups: 0)
        defer { close(socket) }
        guard
            case .route(let route) = try ask(socket, NetlinkRequest.route(to: bytes, sequence: 1)),
            route.isUsable, let interface = route.interface,
            case .link(let link) = try ask(socket, NetlinkRequest.link(interface, sequence: 2)),
            link.isRunning
        else { return .notReachable }
        let type = deviceType(of: link.name)
        return .reachable(
            InterfaceKind(hardwareType: link.hardwareType, deviceType: type, name: link.name))
    }

    /// Returns the reply to a request. Throws if the kernel reports that there is no route.
    private static func ask(
        _ socket: Int32, _ request: [UInt8]
    ) throws(NetlinkError) -> NetlinkMessage {
        let sent = uninterrupted { send(socket, request, request.count, 0) }
        guard sent >= 0 else { throw .system(Int32(-sent)) }
        // The kernel has replied before the call returns.
        guard let bytes = try receive(socket), let answer = try NetlinkMessage.parse(bytes).first
        else { throw .system(EAGAIN) }
        if case .error(let code) = answer, !meansUnreachable(code) { throw .system(code) }
        return answer
    }

    /// Whether an error number means that there is no route. EOPNOTSUPP comes from a kernel without
    /// support for the address family.
    static func meansUnreachable(_ code: Int32) -> Bool {
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
        // struct sockaddr_nl: the family, padding, a port chosen by the kernel, the groups.
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

    /// Returns the kernel's next datagram, truncated to `datagramBytes`, or `nil` if there is none.
    private static func receive(_ socket: Int32) throws(NetlinkError) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: datagramBytes)
        while true {
            var sender = [UInt8](repeating: 0, count: 12)
            var length = socklen_t(sender.count)
            let count = sender.withUnsafeMutableBytes { sender in
                uninterrupted {
                    recvfrom(
                        socket, &bytes, datagramBytes, 0,
                        sender.baseAddress?.assumingMemoryBound(to: sockaddr.self), &length)
                }
            }
            if count == -Int(EAGAIN) { return nil }
            guard count >= 0 else { throw .system(Int32(-count)) }
            // Other processes may write to the socket, too.
            guard sender.number(UInt32.self, at: 4) == 0 else { continue }
            return Array(bytes[..<count])
        }
    }

    private static func deviceType(of name: String) -> String? {
        guard !name.isEmpty, !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return deviceType(inFolder: "/sys/class/net/\(name)")
    }

    /// The device type from the folder in which the kernel describes the interface, or `nil` if it
    /// does not say.
    static func deviceType(inFolder folder: String) -> String? {
        // Some wireless drivers are recognizable only by these files.
        for sign in ["phy80211", "wireless"] where access("\(folder)/\(sign)", F_OK) == 0 {
            return "wlan"
        }
        guard let bytes = try? OpenFile("\(folder)/uevent").contents(most: 4096) else { return nil }
        return InterfaceKind.deviceType(uevent: String(decoding: bytes, as: UTF8.self))
    }

    private static var lastError: NetlinkError { .system(__errno_location().pointee) }
}
