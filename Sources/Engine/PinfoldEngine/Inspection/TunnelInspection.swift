import PinfoldMetrics
import PinfoldTLS

/// The result of inspecting a tunnel.
package enum TunnelInspection: UInt8, Sendable, CaseIterable {
    /// The server has proved its identity in the tunnel itself, by a full handshake.
    case verified
    /// A session was resumed that had been verified under the configuration in force.
    case resumed
    /// Another connection to the same address was verified, because the tunnel uses TLS 1.3. The
    /// weaker check.
    case probed
    /// The tunnel was intercepted instead.
    case intercepted
    /// It was closed.
    case refused

    /// The name in the access log and the metrics.
    package var label: StaticString {
        switch self {
        case .verified: "verified"
        case .resumed: "resumed"
        case .probed: "probed"
        case .intercepted: "intercepted"
        case .refused: "refused"
        }
    }
}

extension TunnelInspection {
    /// What the metrics of tunnels by host entry call it.
    var result: TunnelResult {
        switch self {
        case .verified: .verified
        case .resumed: .resumed
        case .probed: .probed
        case .intercepted: .intercepted
        case .refused: .refused
        }
    }
}

extension WorkerCounter {
    /// The counter of a result; `nil` if it is impossible in that version.
    static func inspected(_ result: TunnelInspection, _ version: TLSVersion?) -> Self? {
        switch (result, version) {
        case (.verified, .tls10): .tunnelsVerifiedTLS10
        case (.verified, .tls11): .tunnelsVerifiedTLS11
        case (.verified, .tls12): .tunnelsVerifiedTLS12
        case (.resumed, .tls10): .tunnelsResumedTLS10
        case (.resumed, .tls11): .tunnelsResumedTLS11
        case (.resumed, .tls12): .tunnelsResumedTLS12
        case (.probed, _): .tunnelsProbedTLS13
        case (.intercepted, _): .tunnelsInterceptedTLS13
        case (.refused, nil): .tunnelsRefusedBeforeVersion
        case (.refused, .tls10): .tunnelsRefusedTLS10
        case (.refused, .tls11): .tunnelsRefusedTLS11
        case (.refused, .tls12): .tunnelsRefusedTLS12
        case (.refused, .tls13): .tunnelsRefusedTLS13
        case (.verified, nil), (.verified, .tls13), (.resumed, nil), (.resumed, .tls13): nil
        }
    }
}

extension TLSVersion {
    /// The version for a number on the wire.
    init?(wire version: UInt16) {
        switch version {
        case 0x0301: self = .tls10
        case 0x0302: self = .tls11
        case 0x0303: self = .tls12
        case 0x0304: self = .tls13
        default: return nil
        }
    }
}
