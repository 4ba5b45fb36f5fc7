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
