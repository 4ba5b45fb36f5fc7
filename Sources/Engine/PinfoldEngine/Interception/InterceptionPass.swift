/// Why a tunnel to a host that is intercepted was passed.
package enum InterceptionPass: UInt8, Sendable, CaseIterable {
    /// The client spoke first, and something else than TLS.
    case notTLS
    /// The server spoke first.
    case serverFirst
    /// The client keeps rejecting the certificates that it is shown.
    case rejected

    /// As the access log has it.
    package var label: StaticString {
        switch self {
        case .notTLS: "not_tls"
        case .serverFirst: "server_first"
        case .rejected: "rejected"
        }
    }
}
