import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldResolver

/// Where the hosts of a session are, in the engine's terms.
///
/// The engine connects to addresses. A Unix socket has one of a block that leads nowhere (100::/64,
/// RFC 6666), which is replaced when the connection is made. Its last 64 bits are random, so that
/// nobody else can name it, and addresses of the block count only where they come from the options:
/// not in URLs, nor in the answers of a resolver.
struct SessionPlaces: NameSource {
    private let options: ConnectionOptions
    /// The sockets, by their addresses.
    let sockets: [IPAddress: String]
    private let addresses: [String: IPAddress]

    /// The maximum number of addresses of a host that are tried.
    private static let maximumAddresses = 64
    /// The first 64 bits of the addresses of sockets: 100::/64.
    private static let block: UInt64 = 0x0100 << 48

    /// Returns `nil` if the options change no addresses.
    init?(_ options: ConnectionOptions) {
        guard !options.places.isEmpty || options.everything != nil || options.resolver != nil
        else { return nil }
        self.options = options
        var paths = options.everything.map { [$0] } ?? []
        for case .unixSocket(let path) in options.places.values where !paths.contains(path) {
            paths.append(path)
        }
        var sockets: [IPAddress: String] = [:]
        var addresses: [String: IPAddress] = [:]
        var random = SystemRandom()
        for path in paths {
            var address: IPAddress
            repeat {
                address = .v6(Self.block, random.next())
            } while sockets[address] != nil
            (sockets[address], addresses[path]) = (path, address)
        }
        (self.sockets, self.addresses) = (sockets, addresses)
    }

    func lookUp(
        host: String, port: UInt16, later: @escaping @Sendable (ResolveResult) -> Void
    ) -> NameAnswer {
        if let path = options.everything { return .addresses(addresses[path].map { [$0] } ?? []) }
        let name = ConnectionOptions.normalized(host)
        let place =
            options.places[.init(host: name, port: port)]
            ?? options.places[.init(host: name, port: nil)]
            ?? options.places[.init(host: "*", port: port)]
            ?? options.places[.init(host: "*", port: nil)]
        switch place {
        case .addresses(let addresses): return .addresses(addresses)
        case .unixSocket(let path): return .addresses(addresses[path].map { [$0] } ?? [])
        case nil: break
        }
        if let literal = IPAddress(name) { return isReserved(literal) ? .addresses([]) : .unknown }
        guard let resolver = options.resolver else { return .unknown }
        let lookup = Task { later(await look(up: host, port, by: resolver)) }
        return .later { lookup.cancel() }
    }

    /// Whether an address may be that of a socket.
    private func isReserved(_ address: IPAddress) -> Bool {
        guard !sockets.isEmpty, case .v6(Self.block, _) = address else { return false }
        return true
    }

    private func look(
        up host: String, _ port: UInt16, by resolver: any HostResolver
    ) async -> ResolveResult {
        let texts: [String]
        do { texts = try await resolver.addresses(of: host, port: Int(port)) } catch {
            return .failed(.serverFailure)
        }
        var addresses: [IPAddress] = []
        for text in texts.prefix(Self.maximumAddresses) {
            guard let address = IPAddress(text)?.unmapped else { return .failed(.badResponse) }
            if !addresses.contains(address), !isReserved(address) { addresses.append(address) }
        }
        guard !addresses.isEmpty else { return .failed(.noData) }
        return .resolved(
            ResolvedAnswer(
                addresses: addresses, source: .hosts, isComplete: true,
                expiresAtMilliseconds: 0))
    }
}

/// Makes the connections of a session.
final class SessionSockets: SocketSource {
    private let source: Sockets.Source
    private let sockets: [IPAddress: String]

    init(_ options: ConnectionOptions, _ places: SessionPlaces?) {
        source = options.source
        sockets = places?.sockets ?? [:]
    }

    func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        if let path = sockets[endpoint.address] { return try UnixSockets.connectAtOnce(to: path) }
        return try source == Sockets.Source()
            ? Sockets.connect(to: endpoint) : Sockets.connect(to: endpoint, from: source)
    }

    func connectionError(_ descriptor: Int32) -> Errno? { Sockets.connectionError(descriptor) }

    /// The server in metrics: an address, or a socket.
    func text(of endpoint: Endpoint) -> String {
        sockets[endpoint.address].map { UnixSocketPath.scheme + $0 } ?? "\(endpoint)"
    }
}
