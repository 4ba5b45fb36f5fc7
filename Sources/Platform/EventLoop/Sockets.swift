import CLinux
import HTTPCore

// Every socket, pipe and file system call of the loop is wrapped here and in `Transfers.swift`:
// EINTR is retried, errno is read at once, and sockets are non-blocking and close-on-exec.

/// A socket's address in the kernel's form, with its length.
struct KernelAddress {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

    init() {}

    init(_ endpoint: Endpoint) {
        switch endpoint.address {
        case .v4(let address):
            var inet = sockaddr_in()
            inet.sin_family = sa_family_t(AF_INET)
            inet.sin_port = endpoint.port.bigEndian
            inet.sin_addr.s_addr = address.bigEndian
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: inet, as: sockaddr_in.self) }
            length = socklen_t(MemoryLayout<sockaddr_in>.size)
        case .v6(let high, let low):
            var inet = sockaddr_in6()
            inet.sin6_family = sa_family_t(AF_INET6)
            inet.sin6_port = endpoint.port.bigEndian
            withUnsafeMutableBytes(of: &inet.sin6_addr) {
                $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
            }
            withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: inet, as: sockaddr_in6.self) }
            length = socklen_t(MemoryLayout<sockaddr_in6>.size)
        }
    }

    /// The IP endpoint, or `nil` for another address family.
    var endpoint: Endpoint? {
        withUnsafeBytes(of: storage) { bytes in
            switch Int32(storage.ss_family) {
            case AF_INET:
                let inet = bytes.load(as: sockaddr_in.self)
                return Endpoint(
                    address: .v4(UInt32(bigEndian: inet.sin_addr.s_addr)),
                    port: UInt16(bigEndian: inet.sin_port))
            case AF_INET6:
                let inet = bytes.load(as: sockaddr_in6.self)
                return withUnsafeBytes(of: inet.sin6_addr) { address in
                    Endpoint(
                        address: .v6(
                            UInt64(bigEndian: address.load(as: UInt64.self)),
                            UInt64(bigEndian: address.load(fromByteOffset: 8, as: UInt64.self))),
                        port: UInt16(bigEndian: inet.sin6_port))
                }
            default:
                return nil
            }
        }
    }

    mutating func withPointer<R>(
        _ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> R
    ) -> R {
        withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                withUnsafeMutablePointer(to: &length) { body(address, $0) }
            }
        }
    }
}

/// Stream sockets as the loop uses them.
public enum Sockets {
    private static let stream = Int32(SOCK_STREAM.rawValue)
    private static let flags = Int32(SOCK_NONBLOCK.rawValue) | Int32(SOCK_CLOEXEC.rawValue)

    private static func family(_ endpoint: Endpoint) -> Int32 {
        if case .v4 = endpoint.address { AF_INET } else { AF_INET6 }
    }

    private static func set(_ fd: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Bool {
        var value = value
        return setsockopt(fd, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) == 0
    }

    /// On connections within this host, sends as soon as the peer has space. There is no network
    /// whose capacity would have to be discovered, and congestion control that paces sending, such
    /// as BBR where it is the system's default, takes a third more processor time for 100 KiB. Reno
    /// is in every kernel, and any process may choose it (tcp(7)); where that fails nevertheless,
    /// the default remains. Accepted connections inherit it from the listening socket.
    static func sendUnpaced(_ fd: Int32, toOrFrom endpoint: Endpoint) {
        guard endpoint.address.scope == .loopback else { return }
        "reno".withCString {
            _ = setsockopt(fd, Int32(IPPROTO_TCP), TCP_CONGESTION, $0, socklen_t(4))
        }
    }

    /// Fails if another process already listens on the address, which SO_REUSEPORT would hide.
    /// - Parameter ours: the inodes of this process's own sockets, which are ignored.
    public static func checkFree(
        _ endpoint: Endpoint, apartFrom ours: Set<UInt64> = []
    ) throws(Errno) {
        guard endpoint.port != 0 else { return }
        do throws(Errno) {
            try tryToBind(endpoint)
        } catch {
            guard error == Errno(code: EADDRINUSE), !ours.isEmpty,
                let holders = ListeningSockets.inodes(at: endpoint), !holders.isEmpty,
                holders.isSubset(of: ours)
            else { throw error }
        }
    }

    /// Binds a temporary socket to the address, and closes it again.
    private static func tryToBind(_ endpoint: Endpoint) throws(Errno) {
        let fd = socket(family(endpoint), stream | flags, 0)
        guard fd >= 0 else { throw Errno.last }
        defer { Descriptors.close(fd) }
        var address = KernelAddress(endpoint)
        guard set(fd, SOL_SOCKET, SO_REUSEADDR, 1),
            family(endpoint) == AF_INET || set(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1),
            address.withPointer({ bind(fd, $0, $1.pointee) }) == 0
        else { throw Errno.last }
    }

    /// A listening socket that several workers may open on the same address (SO_REUSEPORT).
    public static func listen(on endpoint: Endpoint, backlog: Int32 = 4096) throws(Errno) -> Int32 {
        let fd = socket(family(endpoint), stream | flags, 0)
        guard fd >= 0 else { throw Errno.last }
        sendUnpaced(fd, toOrFrom: endpoint)
        var address = KernelAddress(endpoint)
        guard set(fd, SOL_SOCKET, SO_REUSEADDR, 1), set(fd, SOL_SOCKET, SO_REUSEPORT, 1),
            family(endpoint) == AF_INET || set(fd, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1),
            address.withPointer({ bind(fd, $0, $1.pointee) }) == 0, CLinux.listen(fd, backlog) == 0
        else {
            let error = Errno.last
            Descriptors.close(fd)
            throw error
        }
        return fd
    }

    /// The result of accept(2).
    public enum Accepted {
        case connection(Int32, Endpoint)
        case wouldBlock
        /// The connection was gone before it was accepted; there may be another.
        case gone
        case failed(Errno)
    }

    /// Accepts one connection, non-blocking and with Nagle's algorithm disabled.
    public static func accept(_ listener: Int32) -> Accepted {
        var address = KernelAddress()
        let fd = address.withPointer { accept4(listener, $0, $1, flags) }
        guard fd >= 0 else {
            let error = Errno.last
            switch error.code {
            case EAGAIN: return .wouldBlock
            case ECONNABORTED, EINTR, EPROTO, ENETDOWN, EHOSTDOWN, ENONET, EHOSTUNREACH,
                ENETUNREACH:
                return .gone
            default: return .failed(error)
            }
        }
        guard var peer = address.endpoint else {
            // The clients of a Unix socket have no address.
            if Int32(address.storage.ss_family) == AF_UNIX { return .connection(fd, .unnamed) }
            Descriptors.close(fd)
            return .gone
        }
        // A client with IPv4, on a socket for both families.
        if case .v6 = peer.address { peer.address = peer.address.unmapped }
        _ = set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        return .connection(fd, peer)
    }

    /// Starts a connection. The descriptor becomes writable when the connection is established or
    /// has failed; `connectionError` then returns which.
    public static func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        let fd = socket(family(endpoint), stream | flags, 0)
        guard fd >= 0 else { throw Errno.last }
        _ = set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        sendUnpaced(fd, toOrFrom: endpoint)
        var address = KernelAddress(endpoint)
        if address.withPointer({ CLinux.connect(fd, $0, $1.pointee) }) != 0 {
            let error = Errno.last
            guard error == .inProgress || error == .interrupted else {
                Descriptors.close(fd)
                throw error
            }
        }
        return fd
    }

    /// Where a connection begins, instead of where the system's routes say.
    public struct Source: Sendable, Hashable {
        /// The name of an interface, such as `eth0`; `nil` for any. Some kernels let only a
        /// privileged process choose one.
        public var interface: String?
        /// The local address for connections to IPv4 addresses; `nil` for any.
        public var address4: IPAddress?
        /// The local address for connections to IPv6 addresses; `nil` for any.
        public var address6: IPAddress?

        public init(
            interface: String? = nil, address4: IPAddress? = nil, address6: IPAddress? = nil
        ) {
            (self.interface, self.address4) = (interface, address4)
            self.address6 = address6
        }
    }

    /// Starts a connection from a source; see ``connect(to:)``.
    public static func connect(
        to endpoint: Endpoint, from source: Source
    ) throws(Errno) -> Int32 {
        let fd = socket(family(endpoint), stream | flags, 0)
        guard fd >= 0 else { throw Errno.last }
        do throws(Errno) {
            try begin(fd, at: source, for: endpoint)
        } catch {
            Descriptors.close(fd)
            throw error
        }
        _ = set(fd, Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        var address = KernelAddress(endpoint)
        if address.withPointer({ CLinux.connect(fd, $0, $1.pointee) }) != 0 {
            let error = Errno.last
            guard error == .inProgress || error == .interrupted else {
                Descriptors.close(fd)
                throw error
            }
        }
        return fd
    }

    private static func begin(
        _ fd: Int32, at source: Source, for endpoint: Endpoint
    ) throws(Errno) {
        if let interface = source.interface {
            let name = Array(interface.utf8)
            let result = name.withUnsafeBytes {
                setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, $0.baseAddress, socklen_t($0.count))
            }
            guard result == 0 else { throw Errno.last }
        }
        let isV4 = endpoint.address.unmapped.family == .v4
        guard let local = isV4 ? source.address4 : source.address6 else { return }
        // The port is chosen when it connects, so that more connections find one.
        _ = set(fd, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, 1)
        var address = KernelAddress(Endpoint(address: local, port: 0))
        guard address.withPointer({ CLinux.bind(fd, $0, $1.pointee) }) == 0 else {
            throw Errno.last
        }
    }

    /// Lets the kernel probe the peer of a connection that may be silent for a long time (TCP
    /// keep-alive): first after a minute of silence; the connection fails two minutes later at the
    /// latest.
    public static func probePeer(_ fd: Int32) {
        _ = set(fd, SOL_SOCKET, SO_KEEPALIVE, 1)
        _ = set(fd, Int32(IPPROTO_TCP), TCP_KEEPIDLE, 60)
        _ = set(fd, Int32(IPPROTO_TCP), TCP_KEEPINTVL, 20)
        _ = set(fd, Int32(IPPROTO_TCP), TCP_KEEPCNT, 6)
    }

    /// The pending error of a socket (SO_ERROR), cleared by the call, or `nil` if there is none.
    public static func connectionError(_ fd: Int32) -> Errno? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else { return Errno.last }
        return code == 0 ? nil : Errno(code: code)
    }

    /// The number of bytes written to a socket that its peer has not acknowledged, or `nil` if
    /// unknown.
    public static func unsentBytes(_ fd: Int32) -> Int? {
        var count: Int32 = 0
        return unsent_bytes(fd, &count) == 0 ? Int(count) : nil
    }

    /// What the peer has acknowledged, or `nil` if unknown.
    public static func delivery(_ fd: Int32) -> Delivery? {
        var count: UInt64 = 0
        var age: UInt32 = 0
        guard acknowledged_bytes(fd, &count, &age) == 0 else { return nil }
        return Delivery(acknowledgedBytes: count, ageMilliseconds: Int64(age))
    }

    /// The address that a socket is bound to, for instance to learn the port chosen by the kernel.
    public static func localEndpoint(_ fd: Int32) -> Endpoint? {
        var address = KernelAddress()
        guard address.withPointer({ getsockname(fd, $0, $1) }) == 0 else { return nil }
        return address.endpoint
    }

    /// Whether the system would deliver a connection to this address to this host, according to its
    /// current routes: it then chooses the address itself as the source. Sends nothing.
    public static func isLocal(_ address: IPAddress) -> Bool {
        // Any port will do: connecting a datagram socket only looks up a route.
        let endpoint = Endpoint(address: address, port: 9)
        let fd = socket(family(endpoint), Int32(SOCK_DGRAM.rawValue) | flags, 0)
        guard fd >= 0 else { return false }
        defer { Descriptors.close(fd) }
        var target = KernelAddress(endpoint)
        guard target.withPointer({ CLinux.connect(fd, $0, $1.pointee) }) == 0 else { return false }
        return localEndpoint(fd)?.address == address
    }

    fileprivate static func setSendBuffer(_ fd: Int32, _ bytes: Int32) {
        _ = set(fd, SOL_SOCKET, SO_SNDBUF, bytes)
    }

    /// Ends the sending side: the peer reads the end of the stream after what was already sent.
    public static func shutdownWrite(_ fd: Int32) {
        _ = shutdown(fd, Int32(SHUT_WR))
    }

    /// Makes close(2) send a reset instead of pretending that the stream ended cleanly.
    public static func resetOnClose(_ fd: Int32) {
        var value = linger(l_onoff: 1, l_linger: 0)
        _ = setsockopt(
            fd, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }
}

/// Descriptors of any kind.
public enum Descriptors {
    public static func close(_ fd: Int32) {
        // On Linux the descriptor is closed even after EINTR; calling again could close someone
        // else's.
        _ = CLinux.close(fd)
    }

    /// A counter descriptor to wake a loop from another thread (eventfd(2)).
    public static func event() throws(Errno) -> Int32 {
        let fd = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        guard fd >= 0 else { throw Errno.last }
        return fd
    }

    /// Adds one to an event descriptor's counter.
    public static func signal(_ event: Int32) {
        var one: UInt64 = 1
        _ = write(event, &one, 8)
    }

    /// Resets an event descriptor's counter to zero.
    public static func drain(_ event: Int32) {
        var value: UInt64 = 0
        _ = read(event, &value, 8)
    }

    /// A non-blocking pipe of about `capacity` bytes: its read end and its write end.
    public static func pipe(capacity: Int32) throws(Errno) -> (read: Int32, write: Int32) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = withUnsafeMutablePointer(to: &ends) {
            $0.withMemoryRebound(to: Int32.self, capacity: 2) { pipe2($0, O_NONBLOCK | O_CLOEXEC) }
        }
        guard made == 0 else { throw Errno.last }
        _ = fcntl_int(ends.1, Int32(PINFOLD_F_SETPIPE_SZ), capacity)
        return (ends.0, ends.1)
    }

    /// Two connected, non-blocking sockets of this process (socketpair(2)).
    /// - Parameter buffer: about how many bytes each takes before the other has read them.
    public static func socketPair(buffer: Int32) throws(Errno) -> (Int32, Int32) {
        var ends: (Int32, Int32) = (-1, -1)
        let type = Int32(
            SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let made = withUnsafeMutablePointer(to: &ends) {
            $0.withMemoryRebound(to: Int32.self, capacity: 2) { socketpair(AF_UNIX, type, 0, $0) }
        }
        guard made == 0 else { throw Errno.last }
        Sockets.setSendBuffer(ends.0, buffer)
        Sockets.setSendBuffer(ends.1, buffer)
        return ends
    }

    /// Raises the soft limit on open descriptors to the hard one; returns the limit in force.
    @discardableResult
    public static func raiseLimit() -> UInt64 {
        var limit = rlimit()
        guard getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        if limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit)
            _ = getrlimit(Int32(RLIMIT_NOFILE.rawValue), &limit)
        }
        return UInt64(limit.rlim_cur)
    }
}
