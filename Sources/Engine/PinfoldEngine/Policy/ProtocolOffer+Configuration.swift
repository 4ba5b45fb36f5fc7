import PinfoldConfiguration
import PinfoldTLS

extension ServerHTTP2 {
    /// What is offered to servers over TLS.
    var offer: ProtocolOffer {
        guard HTTP2Support.towardsServers else { return .http1 }
        switch self {
        case .auto: return .either
        case .require: return .http2
        case .off: return .http1
        }
    }
}

extension ProtocolOffer {
    /// What is selected from with clients.
    /// - Parameter takesHTTP2: whether HTTP/2 is spoken with those that want it.
    package init(takesHTTP2: Bool) { self = takesHTTP2 ? .either : .http1 }
}
