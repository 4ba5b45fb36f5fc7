import HTTPCore
import Trust

/// Which hosts a request to the administrative address may name.
enum AdminHost {
    /// Whether a host is the administrative address's own: none at all (which no browser sends), a
    /// loopback name or address, the address that was connected to, or one named by the operator.
    ///
    /// - Parameters:
    ///   - host: without port and brackets.
    ///   - port: the request's port.
    ///   - local: the connection's local address.
    ///   - named: `admin.hosts`.
    static func isOwn(
        _ host: String, port: UInt16, at local: IPAddress?, named: [HostPattern]
    ) -> Bool {
        let host = host.lowercasedASCII
        if host.isEmpty || host == "localhost" || host.hasSuffix(".localhost") { return true }
        if let address = IPAddress(host) {
            if address.unmapped.scope == .loopback || address.unmapped == local?.unmapped {
                return true
            }
        }
        return named.contains { $0.matches(host: host, port: port) }
    }
}
