/// Why what was asked is not allowed. The order is that of the documentation.
package enum AccessReason: UInt8, Sendable, CaseIterable {
    case notAProxyRequest
    case clientNotAllowed
    case connectOnReverseRoute
    case connectPortRefused
    case tunnelRefused
    case destinationRefused
    case loopDetected

    /// Everything that is said of it.
    package var entry: ReasonEntry {
        switch self {
        case .notAProxyRequest:
            ReasonEntry(
                "not-a-proxy-request", .access, 400, .requestDenied,
                "this is a forward proxy: expected an absolute URL in the request line, or CONNECT",
                remedy: "Set the address as the client's proxy (`http_proxy`, `curl -x`), or make "
                    + "the listener `kind: reverse`.")
        case .clientNotAllowed:
            ReasonEntry(
                "client-not-allowed", .access, 403, .requestDenied,
                "the client's address is in none of the networks of access.clients",
                remedy: "Add the client's network to `access.clients` if it is to be served.")
        case .connectOnReverseRoute:
            ReasonEntry(
                "connect-on-reverse-route", .access, 405, .requestDenied,
                "CONNECT is not served by a reverse listener",
                remedy: "Point the client's proxy setting at a listener of `kind: forward`.")
        case .connectPortRefused:
            ReasonEntry(
                "connect-port-refused", .access, 403, .requestDenied,
                "CONNECT to this port is not allowed",
                remedy: "Add the port to `access.connectPorts`. Some clients use CONNECT for "
                    + "`http://` too, and need port 80.")
        case .tunnelRefused:
            ReasonEntry(
                "tunnel-refused", .access, 403, .requestDenied,
                "tunnels to this host are refused by its configuration",
                remedy: "Ask for the host with `http://` and `upgrade: https`, or set `tunnel: "
                    + "pass` in its entry of `hosts`.")
        case .destinationRefused:
            ReasonEntry(
                "destination-refused", .access, 403, .destinationProhibited,
                "the destination's address is not one that may be connected to",
                remedy: "Name its network in `access.destinations.allow`, or take it out of "
                    + "`access.destinations.deny`: the reply says which of the two decides.")
        case .loopDetected:
            ReasonEntry(
                "loop-detected", .access, 508, .loopDetected,
                "the request has already passed through this gateway",
                remedy: "Look for an upstream or a DNS name that leads back to the gateway.")
        }
    }
}
