import HTTPCore

/// The sockets that a listener takes over from the service manager, in place of opening its own.
package struct PassedAddress: Sendable, Equatable {
    /// The name that the manager gave them.
    package var name: String
    /// The addresses that they listen on; empty where they are not known, outside of the process
    /// that they are passed to.
    package var endpoints: [Endpoint]
    /// The paths of those that are Unix sockets, likewise.
    package var unixPaths: [String]

    /// An address by its name.
    package init(name: String, endpoints: [Endpoint] = [], unixPaths: [String] = []) {
        self.name = name
        self.endpoints = endpoints
        self.unixPaths = unixPaths
    }

    /// What the configuration has before the name.
    package static let prefix = "fd:"

    /// The address as written in the configuration.
    package var text: String { Self.prefix + name }
}

extension ListenerConfiguration {
    /// All addresses that it listens on, as far as they are known.
    package var endpoints: [Endpoint] { unix == nil ? passed?.endpoints ?? [address] : [] }
    /// Whether only this machine reaches it, as it does a Unix socket.
    package var isLoopback: Bool { endpoints.allSatisfy { $0.address.scope == .loopback } }
    /// Whether it has a Unix socket, as far as that is known.
    package var hasUnixSocket: Bool { !unixPaths.isEmpty }
    /// The address as written in the configuration.
    package var addressText: String {
        unix.map { ListenAddress.unix($0).description } ?? passed?.text ?? address.description
    }
}

extension ListenerConfiguration {
    /// The paths of the Unix sockets that it listens on, as far as they are known.
    package var unixPaths: [String] { unix.map { [$0.path] } ?? passed?.unixPaths ?? [] }
}

extension ConfigurationSnapshot {
    /// The names of all sockets that are taken over.
    package var passedNames: Set<String> {
        Set((listeners.map(\.passed) + [admin.passed]).compactMap { $0?.name })
    }
}

extension AdminConfiguration {
    /// The paths of the Unix sockets that it listens on, as far as they are known.
    package var unixPaths: [String] {
        address.unix.map { [$0.path] } ?? passed?.unixPaths ?? []
    }
    /// All addresses that it listens on, as far as they are known.
    package var endpoints: [Endpoint] {
        passed?.endpoints ?? [address.endpoint].compactMap { $0 }
    }
    /// Whether only this machine reaches it, as it does a Unix socket.
    package var isLoopback: Bool { endpoints.allSatisfy { $0.address.scope == .loopback } }
    /// The address as written in the configuration.
    package var addressText: String { passed?.text ?? address.description }
}
