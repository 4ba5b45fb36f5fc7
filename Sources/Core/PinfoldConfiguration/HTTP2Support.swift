/// Where HTTP/2 is spoken so far, whatever the configuration says. Temporary: it goes when both
/// constants are true.
package enum HTTP2Support {
    /// With clients of listeners; in intercepted tunnels once servers agree on it.
    package static let towardsClients = true
    /// With servers.
    package static let towardsServers = false
}

extension ClientHTTP2 {
    /// Whether it is spoken with clients that want it.
    package var isTaken: Bool { self == .auto && HTTP2Support.towardsClients }
}
