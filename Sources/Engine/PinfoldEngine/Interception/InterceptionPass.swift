/// Why a tunnel to an intercepted host was relayed.
package enum InterceptionPass: UInt8, Sendable, CaseIterable {
    /// The client sent data first, and it was not TLS.
    case notTLS
    /// The server sent data first.
    case serverFirst
    /// The client keeps rejecting the certificates that it is shown.
    case rejected

    /// The name in the access log.
    package var label: StaticString {
        switch self {
        case .notTLS: "not_tls"
        case .serverFirst: "server_first"
        case .rejected: "rejected"
        }
    }
}
