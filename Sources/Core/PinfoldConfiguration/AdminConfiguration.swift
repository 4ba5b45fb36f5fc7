import HTTPCore
import Trust

/// The administrative listener.
package struct AdminConfiguration: Sendable, Equatable {
    /// Where it listens; with port 0 the system chooses one.
    package var address = ListenAddress.network(Endpoint(address: .loopbackV4, port: 9090))
    /// The sockets that it takes over in place of opening its own; `address` is then that of the
    /// first. `nil` if it opens its own.
    package var passed: PassedAddress?
    /// The TLS settings for its clients; `nil` for clear text. With `clientRoots`, each must show a
    /// certificate of one of these, and is an operator.
    package var tls: ListenerTLS?
    /// The bearer token for everything that is not open to everyone; `nil` if there is none.
    package var token: BearerToken?
    /// Who may read the metrics; health and readiness are open to everyone.
    package var metrics = Metrics.open
    /// The names that requests may use in addition to the loopback names and the address itself.
    package var hosts: [HostPattern] = []
    /// Whether an operator may record the values of secret fields.
    package var recordSecrets = false

    /// Creates the defaults.
    package init() {}

    /// Who may read the metrics.
    package enum Metrics: String, Sendable, Equatable, CaseIterable {
        /// Everyone who can reach the address.
        case open
        /// Clients that present the token.
        case token
    }
}
