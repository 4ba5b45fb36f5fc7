import CLinux
import HTTPCore

// Connections that a rule of the firewall has led to a listening socket here, although they were
// made to another address (netfilter's REDIRECT and TPROXY).
extension Sockets {
    /// SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST (linux/netfilter_ipv4.h,
    /// linux/netfilter_ipv6/ip6_tables.h).
    private static let originalDestinationOption: Int32 = 80

    /// Where a connection was made to before REDIRECT led it here, as connection tracking has it.
    ///
    /// - Returns: the address, IPv4 unmapped.
    /// - Throws: `ENOENT` if there is no entry for the connection, `ENOPROTOOPT` if the system does
    ///   not track connections. A connection that was made to this socket itself has an entry, with
    ///   its address, once anything tracks connections.
    public static func destinationBeforeRedirect(_ fd: Int32) throws(Errno) -> Endpoint {
        guard let local = localEndpoint(fd) else { throw Errno(code: EBADF) }
        let level: Int32
        switch local.address.unmapped {
        case .v4: level = Int32(IPPROTO_IP)
        case .v6: level = Int32(IPPROTO_IPV6)
        }
        var address = KernelAddress()
        // The system wants the exact size of the family's address.
        address.length =
            level == Int32(IPPROTO_IP)
            ? socklen_t(MemoryLayout<sockaddr_in>.size)
            : socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = address.withPointer {
            getsockopt(fd, level, originalDestinationOption, $0, $1)
        }
        guard result == 0 else { throw Errno.last }
        guard var found = address.endpoint else { throw Errno(code: ENOENT) }
        found.address = found.address.unmapped
        return found
    }

    /// Where a connection was made to that TPROXY has given to a listening socket here: that is its
    /// local address.
    public static func destinationByTransparentSocket(_ fd: Int32) throws(Errno) -> Endpoint {
        guard var local = localEndpoint(fd) else { throw Errno(code: EBADF) }
        local.address = local.address.unmapped
        return local
    }

    /// Lets a listening socket accept connections to addresses that are not this host's (ip(7),
    /// IP_TRANSPARENT). One that has been made so by whoever opened it stays so.
    /// - Throws: `EPERM` without CAP_NET_ADMIN or CAP_NET_RAW.
    public static func makeTransparent(_ fd: Int32) throws(Errno) {
        guard let local = localEndpoint(fd) else { throw Errno(code: EBADF) }
        let (level, option) =
            if case .v4 = local.address {
                (Int32(IPPROTO_IP), IP_TRANSPARENT)
            } else {
                (Int32(IPPROTO_IPV6), IPV6_TRANSPARENT)
            }
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        if getsockopt(fd, level, option, &value, &length) == 0, value != 0 { return }
        value = 1
        guard setsockopt(fd, level, option, &value, length) == 0 else { throw Errno.last }
    }
}
