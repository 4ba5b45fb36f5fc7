import PinfoldConfiguration
import PinfoldTLS

extension ServerHTTP2 {
    /// What is offered to servers over TLS.
    var offer: ProtocolOffer {
        switch self {
        case .auto: return .either
        case .require: return .http2
        case .off: return .http1
        }
    }
}

extension ClientHTTP2 {
    /// What is selected from with clients.
    var offer: ProtocolOffer {
        switch self {
        case .auto: .either
        case .off: .http1
        }
    }
}
