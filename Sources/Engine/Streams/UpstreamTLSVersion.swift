/// The TLS version that an exchange's upstream connection spoke.
package enum UpstreamTLSVersion: UInt8, Sendable, CaseIterable {
    /// Clear text, or no upstream connection.
    case none
    case tls10, tls11, tls12, tls13

    /// The version of a number from the wire (RFC 8446 section 4.2.1): 0x0303 is TLS 1.2. Others
    /// are `none`.
    package init(wire: UInt16) {
        switch wire {
        case 0x0301: self = .tls10
        case 0x0302: self = .tls11
        case 0x0303: self = .tls12
        case 0x0304: self = .tls13
        default: self = .none
        }
    }

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
