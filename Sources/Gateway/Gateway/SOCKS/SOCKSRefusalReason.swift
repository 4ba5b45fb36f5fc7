import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import ProxyProtocols

/// Why a client of SOCKS is refused before there is a request.
enum SOCKSRefusalReason: Equatable {
    /// It does not say what is expected of it.
    case `protocol`(SOCKSError)
    /// It did not say everything within `timeouts.head`.
    case timeout

    /// The word for it in the log.
    var token: String {
        switch self {
        case .protocol(.version4): "socks-version-4"
        case .protocol(.http): "socks-http"
        case .protocol(.tls): "socks-tls"
        case .protocol(.version): "socks-version"
        case .protocol(.noMethod): "socks-no-method"
        case .protocol(.malformedCredentials), .protocol(.credentials):
            "socks-credentials-malformed"
        case .protocol(.malformedRequest): "socks-request-malformed"
        case .protocol(.command): "socks-command"
        case .protocol(.addressType): "socks-address-type"
        case .protocol(.malformedDestination): "socks-destination-malformed"
        case .timeout: "socks-timeout"
        }
    }

    var explanation: String {
        switch self {
        case .protocol(let error): error.explanation
        case .timeout: "the client did not say everything within timeouts.head"
        }
    }

    /// Where it is counted.
    var counter: WorkerCounter {
        switch self {
        case .protocol(.version4), .protocol(.http), .protocol(.tls), .protocol(.version):
            .socksVersionRefused
        case .protocol(.noMethod): .socksMethodRefused
        case .protocol(.malformedCredentials), .protocol(.credentials),
            .protocol(.malformedRequest), .protocol(.malformedDestination):
            .socksMalformed
        case .protocol(.command): .socksCommandRefused
        case .protocol(.addressType): .socksAddressTypeRefused
        case .timeout: .socksTimeout
        }
    }
}

extension Worker {
    /// Counts a client of SOCKS that is refused before there is a request, and logs it at times.
    func note(_ refusal: SOCKSRefusalReason, from peer: Endpoint, on ingress: Ingress) {
        metrics.add(refusal.counter)
        guard mayLogRefusal() else { return }
        shared.logger.warning(
            "a client of a socks5 listener is refused",
            metadata: [
                "listener": "\(ingress.name)", "client": "\(String(peer.clientText))",
                "reason": "\(refusal.token)", "detail": "\(refusal.explanation)",
            ])
    }
}
