/// The TLS version that an exchange's upstream connection spoke.
package enum UpstreamTLSVersion: UInt8, Sendable, CaseIterable {
    /// Clear text, or no upstream connection.
    case none
    case tls10, tls11, tls12, tls13

    /// The name in the log; empty for `none`.
    package var label: StaticString {
        switch self {
        case .none: ""
        case .tls10: "TLSv1.0"
        case .tls11: "TLSv1.1"
        case .tls12: "TLSv1.2"
        case .tls13: "TLSv1.3"
        }
    }
}
