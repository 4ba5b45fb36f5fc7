import EventLoop
import HTTPCore
import HTTPTypes
import Trust

/// Where a session connects to, and from. By default, names are resolved by the hosts file and DNS,
/// and the system's routes decide from where connections are made.
///
/// None of this changes whom the session talks to: URLs, Host, cookies, the cache and the names in
/// certificates remain those of the URL. It applies to proxies as well, because connections are
/// made to them; behind a proxy, the proxy connects.
public struct ConnectionOptions: Sendable {
    /// Where a host is, instead of where its name says.
    enum Place: Sendable, Hashable {
        case addresses([IPAddress])
        case unixSocket(String)
    }

    /// A host, and the only port that is meant, or `nil` for all of them.
    struct Key: Sendable, Hashable {
        var host: String
        var port: UInt16?
    }

    private(set) var places: [Key: Place] = [:]
    private(set) var source = Sockets.Source()
    private(set) var everything: String?

    /// Looks up the names that have no addresses here, or `nil` for the hosts file and DNS.
    public var resolver: (any HostResolver)?

    /// Creates options that change nothing.
    public init() {}

    /// Sets the addresses of a host, as `--resolve` of curl does.
    ///
    /// - Parameters:
    ///   - host: The host in URLs, or `*` for every host that is not named otherwise.
    ///   - port: The port in URLs, or `nil` for every port that has no addresses of its own.
    ///   - addresses: IPv4 and IPv6 addresses, which are tried as those of a name are (RFC 8305).
    ///     If there are none, the host cannot be resolved.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidConfiguration`` if an address,
    ///   the host or the port is not valid.
    public mutating func resolve(
        _ host: String, port: Int? = nil, to addresses: [String]
    ) throws(ClientError) {
        var parsed: [IPAddress] = []
        for address in addresses { parsed.append(try Self.address(address)) }
        places[try Self.key(host, port)] = .addresses(parsed)
    }

    /// Connects to a Unix socket instead of a host.
    ///
    /// - Parameters:
    ///   - host: The host in URLs, or `*` for every host that is not named otherwise.
    ///   - port: The port in URLs, or `nil` for every port.
    ///   - path: The absolute path of the socket.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidConfiguration`` if the path, the
    ///   host or the port is not valid.
    public mutating func connect(
        _ host: String, port: Int? = nil, toUnixSocket path: String
    ) throws(ClientError) {
        places[try Self.key(host, port)] = .unixSocket(try Self.socket(path))
    }

    /// Connects to a Unix socket instead of any host, as `--unix-socket` of curl does. Proxies are
    /// then not used.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidConfiguration`` if the path is
    ///   not valid.
    public mutating func connect(toUnixSocket path: String) throws(ClientError) {
        everything = try Self.socket(path)
    }

    /// Makes connections from local addresses, or from an interface.
    ///
    /// - Parameters:
    ///   - addresses: At most one IPv4 and one IPv6 address of this host. For a family without one,
    ///     the system chooses.
    ///   - interface: The name of a network interface, or `nil` for any. Without privileges, Linux
    ///     lets a process choose one only if the socket has none yet, since version 5.7.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidConfiguration`` if the addresses
    ///   or the name are not valid. Whether they exist shows when a connection is made.
    public mutating func connect(
        from addresses: [String] = [], interface: String? = nil
    ) throws(ClientError) {
        var source = Sockets.Source(interface: interface)
        if let interface {
            // IFNAMSIZ, with the byte that ends it.
            guard (1...15).contains(interface.utf8.count), !interface.utf8.contains(0) else {
                throw Self.invalid("the interface \(interface): expected a name of 1 to 15 bytes")
            }
        }
        for text in addresses {
            let address = try Self.address(text)
            switch address.family {
            case .v4 where source.address4 == nil: source.address4 = address
            case .v6 where source.address6 == nil: source.address6 = address
            default: throw Self.invalid("\(text) is a second local address of the same family")
            }
        }
        self.source = source
    }

    // MARK: Checks

    private static func invalid(_ explanation: String) -> ClientError {
        ClientError(.invalidConfiguration, explanation)
    }

    private static func address(_ text: String) throws(ClientError) -> IPAddress {
        let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
        guard let address = IPAddress(isBracketed ? String(text.dropFirst().dropLast()) : text)
        else { throw invalid("\(text) is not an IPv4 or IPv6 address") }
        return address.unmapped
    }

    private static func key(_ host: String, _ port: Int?) throws(ClientError) -> Key {
        var key = Key(host: host == "*" ? host : try name(host), port: nil)
        guard let port else { return key }
        guard let number = UInt16(exactly: port), number > 0 else {
            throw invalid("the port \(port) is not a number from 1 to 65535")
        }
        key.port = number
        return key
    }

    /// The host as it is looked for.
    private static func name(_ host: String) throws(ClientError) -> String {
        let isBareV6 = host.contains(":") && !host.hasPrefix("[")
        let request = try? HTTPRequest(.get, "http://\(isBareV6 ? "[\(host)]" : host)/")
        guard let request, request.path == "/", let origin = request.origin,
            let pattern = try? HostPattern(Self.normalized(request.authority ?? "")),
            pattern.port == nil, let name = pattern.exactName, origin.port == 80
        else { throw invalid("\(host) is not a host name or an address") }
        return Self.normalized(name)
    }

    /// A host as it is looked for: without brackets and a trailing dot, an address in its usual
    /// form.
    static func normalized(_ host: String) -> String {
        var host = host[...]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        if host.hasSuffix(".") { host = host.dropLast() }
        return IPAddress(host).map { "\($0.unmapped)" } ?? String(host)
    }

    private static func socket(_ path: String) throws(ClientError) -> String {
        guard path.hasPrefix("/"), !path.utf8.contains(0),
            path.utf8.count <= UnixSocketPath.maximumBytes
        else {
            throw invalid(
                "the socket \(path): expected an absolute path of at most "
                    + "\(UnixSocketPath.maximumBytes) bytes")
        }
        return path
    }
}

/// Looks up the addresses of hosts, instead of the hosts file and DNS.
public protocol HostResolver: Sendable {
    /// Returns the IPv4 and IPv6 addresses of a host, in the order of preference; none if it has
    /// none. At most the first 64 are tried.
    ///
    /// It is called for each connection that is made, except to addresses; a resolver that asks
    /// others should remember what they said. Its task is cancelled if nobody waits for the
    /// connection any more, or for longer than ``SessionConfiguration/connectTimeout``.
    ///
    /// - Parameters:
    ///   - host: The host in lower case, in A-labels if it is international.
    ///   - port: The port of the URL.
    /// - Throws: Any error: the host could not be resolved.
    func addresses(of host: String, port: Int) async throws -> [String]
}
