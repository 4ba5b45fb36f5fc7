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
    /// To whom it is given; `nil` for the user and the group of the process.
    public var owner: Owner?

    /// A user and perhaps a group, by their numbers.
    public struct Owner: Hashable, Sendable {
        /// As it is written: `user` or `user:group`.
        public var text: String
        public var user: UInt32
        /// `nil` if it keeps its group.
        public var group: UInt32?

        /// An owner whose names have been looked up.
        public init(text: String, user: UInt32, group: UInt32?) {
            self.text = text
            self.user = user
            self.group = group
        }
    }

    /// A path with permissions.
    public init(path: String, mode: UInt32 = defaultMode, owner: Owner? = nil) {
        self.path = path
        self.mode = mode
        self.owner = owner
    }
}

extension Endpoint {
    /// In place of the address of a client that has none, as those of a Unix socket: it belongs to
    /// no network but ``IPNetwork/unixClients``, and is never another client's.
    public static let unnamed = Endpoint(address: .unnamed, port: 0)

    /// The text of a client: `192.0.2.1:80`, or `unix` without an address.
    public var clientText: AddressText { address == .unnamed ? IPAddress.unixText : text }
}

extension IPAddress {
    /// See ``Endpoint/unnamed``.
    public static let unnamed = IPAddress.v4(0)

    /// The text of a client: its address, or `unix` without one.
    public var clientText: AddressText { self == .unnamed ? Self.unixText : text }
}

extension IPNetwork {
    /// In lists of clients, the word for those of Unix sockets.
    public static let unixWord = "unix"
    /// The clients of Unix sockets, which are counted as one.
    public static let unixClients = IPNetwork(IPAddress.unnamed)

    /// Whether a client is in the network. One without an address is in ``unixClients`` only,
    /// however large another network is.
    public func contains(client: IPAddress) -> Bool {
        contains(client) && (client != .unnamed || self == .unixClients)
    }

    /// The network in lists of clients and in logs.
    public var clientDescription: String {
        self == .unixClients ? Self.unixWord : description
    }
}
