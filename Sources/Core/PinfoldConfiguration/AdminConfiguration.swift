import HTTPCore
import Trust

/// The administrative listener.
package struct AdminConfiguration: Sendable, Equatable {
    /// The local address and port; with port 0 the system chooses one.
    package var address = Endpoint(address: .loopbackV4, port: 9090)
    /// The sockets that it takes over in place of opening its own; `address` is then that of the
    /// first. `nil` if it opens its own.
    package var passed: PassedAddress?
    /// The bearer token for everything that is not open to everyone; `nil` if there is none.
    package var token: AdminToken?
    /// Who may read the metrics and the index page; health and readiness are open to everyone.
    package var metrics = Metrics.open
    /// The names that requests may use in addition to the loopback names and the address itself.
    package var hosts: [HostPattern] = []

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

/// The administrative token and the file from which it was read.
package struct AdminToken: Sendable, Equatable {
    /// The absolute path of the file.
    package var path: String
    /// The token: the file's bytes without leading and trailing white space; never empty.
    package var bytes: [UInt8]

    /// Creates a token that has been read.
    package init(path: String, bytes: [UInt8]) {
        self.path = path
        self.bytes = bytes
    }
}
