/// Where a socket listens.
public enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An address and a port of the network.
    case network(Endpoint)
    /// A Unix socket.
    case unix(UnixSocketPath)

    /// The address and the port; `nil` for a Unix socket.
    public var endpoint: Endpoint? {
        if case .network(let endpoint) = self { endpoint } else { nil }
    }

    /// The Unix socket; `nil` for an address of the network.
    public var unix: UnixSocketPath? {
        if case .unix(let socket) = self { socket } else { nil }
    }

    /// Whether only programs of this machine can reach it.
    public var isLocal: Bool { endpoint.map { $0.address.scope == .loopback } ?? true }

    /// As it is written: `127.0.0.1:80`, or `unix:/run/a.sock`.
    public var description: String {
        switch self {
        case .network(let endpoint): "\(endpoint)"
        case .unix(let socket): UnixSocketPath.scheme + socket.path
        }
    }
}

/// The path of a Unix socket.
public struct UnixSocketPath: Hashable, Sendable {
    /// What addresses of Unix sockets begin with.
    public static let scheme = "unix:"
    /// The most bytes that a path may have (unix(7)).
    public static let maximumBytes = 107
    /// The permissions that a socket has if none are named: only its owner may connect.
    public static let defaultMode: UInt32 = 0o600

    /// The absolute path.
    public var path: String
    /// Its permissions: who may write to it may connect.
    public var mode: UInt32

    /// A path with permissions.
    public init(path: String, mode: UInt32 = defaultMode) {
        self.path = path
        self.mode = mode
    }
}

extension Endpoint {
    /// In place of the address of a client that has none, as those of a Unix socket: it belongs to
    /// no network, and is never a client's.
    public static let unnamed = Endpoint(address: .v4(0), port: 0)
}
