import HTTPCore

/// The sockets that a listener takes over from the service manager, in place of opening its own.
package struct PassedAddress: Sendable, Equatable {
    /// The name that the manager gave them.
    package var name: String
    /// The addresses that they listen on; empty where they are not known, outside of the process
    /// that they are passed to.
    package var endpoints: [Endpoint]

    /// An address by its name.
    package init(name: String, endpoints: [Endpoint] = []) {
        self.name = name
        self.endpoints = endpoints
    }

    /// What the configuration has before the name.
    package static let prefix = "fd:"

    /// The address as written in the configuration.
    package var text: String { Self.prefix + name }
}

extension ListenerConfiguration {
    /// All addresses that it listens on, as far as they are known.
    package var endpoints: [Endpoint] { passed?.endpoints ?? [address] }
    /// Whether only this machine reaches it.
    package var isLoopback: Bool { endpoints.allSatisfy { $0.address.scope == .loopback } }
    /// The address as written in the configuration.
    package var addressText: String { passed?.text ?? address.description }
}

extension ConfigurationSnapshot {
    /// The names of all sockets that are taken over.
    package var passedNames: Set<String> {
        Set((listeners.map(\.passed) + [admin.passed]).compactMap { $0?.name })
    }
}

extension AdminConfiguration {
    /// All addresses that it listens on, as far as they are known.
    package var endpoints: [Endpoint] { passed?.endpoints ?? [address] }
    /// Whether only this machine reaches it.
    package var isLoopback: Bool { endpoints.allSatisfy { $0.address.scope == .loopback } }
    /// The address as written in the configuration.
    package var addressText: String { passed?.text ?? address.description }
}
