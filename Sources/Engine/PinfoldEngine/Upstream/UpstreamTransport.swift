import PinfoldTLS

// What a transport's state means for a connection to a server.

extension ExchangeError {
    /// The error of an exchange whose transport to the server is broken.
    init(upstream error: TransportError) {
        switch error {
        case .reset(let error): self = .upstreamReset(error)
        case .tls(let error): self = .tlsFailed(error)
        case .closed: self = .server(.upstreamClosed)
        }
    }
}

extension UpstreamTLSVersion {
    /// The version for the access log.
    init(_ version: TLSVersion?) {
        switch version {
        case .tls10: self = .tls10
        case .tls11: self = .tls11
        case .tls12: self = .tls12
        case .tls13: self = .tls13
        case nil: self = .none
        }
    }
}
