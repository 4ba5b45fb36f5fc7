import HTTPCore

/// Who may purge with requests of the method PURGE: clients of these networks, and those that
/// present the token. Where both are given, both must hold.
package struct PurgeConfiguration: Sendable, Equatable {
    /// The networks of clients; `nil` if only the token counts.
    package var clients: [IPNetwork]?
    /// The token; `nil` if only the network counts.
    package var token: BearerToken?

    /// Creates a configuration by which nobody may purge: neither is given.
    package init() {}

    /// Whether a client of this address may purge, with the right token if there is one.
    ///
    /// - Parameter address: the proved address: that of the connection, or the one in a PROXY
    ///   header from a sender that is required to send one.
    package func admits(_ address: IPAddress?) -> Bool {
        guard let clients else { return token != nil }
        guard let address else { return false }
        return clients.contains { $0.contains(client: address) }
    }
}
