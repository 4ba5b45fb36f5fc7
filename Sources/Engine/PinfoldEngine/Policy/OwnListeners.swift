import EventLoop
import HTTPCore

/// The addresses that this gateway listens on, so that it cannot be made to connect to itself:
/// CONNECT within CONNECT would nest until descriptors run out.
package struct OwnListeners: Equatable {
    private var endpoints: [Endpoint] = []

    /// - Parameter endpoints: the addresses of the listeners, including the administration's.
    package init(_ endpoints: [Endpoint] = []) {
        self.endpoints = endpoints
    }

    /// Whether a connection to an address would arrive at one of the listeners.
    ///
    /// - Parameters:
    ///   - address: an address in any form. A mapped one counts as IPv4; the unspecified address,
    ///     which connects to this host, counts as every address of its family.
    ///   - isLocal: whether the system delivers packets for an address to this host; called only if
    ///     a listener on all addresses has the port.
    package func contains(
        _ address: IPAddress, port: UInt16, isLocal: (IPAddress) -> Bool = Sockets.isLocal
    ) -> Bool {
        let address = address.unmapped
        for endpoint in endpoints where endpoint.port == port {
            let own = endpoint.address.unmapped
            if own == address { return true }
            guard own.family == address.family else { continue }
            if address.scope == .unspecified { return true }
            guard own.scope == .unspecified else { continue }
            if address.scope == .loopback || isLocal(address) { return true }
        }
        return false
    }
}
