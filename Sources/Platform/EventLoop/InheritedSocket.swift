import CLinux
import HTTPCore

/// What a descriptor is that another process opened.
public enum InheritedSocket: Equatable, Sendable {
    /// A stream socket that listens on an IP address.
    /// - isDualStack: whether it listens on all addresses of both families; then the address is
    ///   the IPv6 one.
    case listening(Endpoint, isDualStack: Bool)
    /// A stream socket that listens on an address of this machine (unix(7)): a path of its file
    /// system, or `@` and an abstract name.
    case listeningOnUnix(path: String)
    /// Something else, in words.
    case unusable(String)
}

extension Sockets {
    /// What a descriptor is.
    public static func inherited(_ fd: Int32) -> InheritedSocket {
        guard let type = option(fd, SO_TYPE) else {
            return .unusable(
                fcntl_int(fd, F_GETFD, 0) < 0 ? "is not open" : "is not a socket")
        }
        guard type == Int32(SOCK_STREAM.rawValue) else { return .unusable("is no stream socket") }
        guard option(fd, SO_ACCEPTCONN) == 1 else {
            return .unusable("is a socket that does not listen")
        }
        switch option(fd, SO_DOMAIN) {
        case AF_UNIX: return .listeningOnUnix(path: UnixSockets.path(of: fd))
        case AF_INET, AF_INET6:
            guard let endpoint = localEndpoint(fd) else { break }
            var isDualStack = false
            if case .v6 = endpoint.address, endpoint.address.scope == .unspecified {
                isDualStack = option(fd, IPV6_V6ONLY, of: Int32(IPPROTO_IPV6)) == 0
            }
            return .listening(endpoint, isDualStack: isDualStack)
        default: break
        }
        return .unusable("is a socket of another family than IP")
    }

    /// Another descriptor of an inherited listening socket, which is ours to close. The socket
    /// itself stays the same one, and becomes non-blocking for whoever else has it, too.
    public static func duplicate(ofListening fd: Int32) throws(Errno) -> Int32 {
        let flags = fcntl_int(fd, F_GETFL, 0)
        guard flags >= 0, fcntl_int(fd, F_SETFL, flags | O_NONBLOCK) == 0 else { throw Errno.last }
        let copy = fcntl_int(fd, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw Errno.last }
        if let endpoint = localEndpoint(copy) { sendUnpaced(copy, toOrFrom: endpoint) }
        return copy
    }

    private static func option(
        _ fd: Int32, _ option: Int32, of level: Int32 = SOL_SOCKET
    ) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(fd, level, option, &value, &length) == 0 ? value : nil
    }
}
