import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import Trust

/// Why a connection at a transparent listener is closed before there is a request.
enum TransparentRefusalReason: Equatable {
    /// The system does not know where it was going.
    case unknownDestination(Errno)
    /// It was made to one of the gateway's own listeners.
    case direct(Endpoint)
    /// It is one of the gateway's own connections to servers.
    case ownConnection(Endpoint)
    /// Its TLS cannot be read, and so the name that it asks for.
    case malformedTLS(TLSWireError)
    /// The name that its TLS asks for is none.
    case malformedName
    /// It did not say anything within `timeouts.head`.
    case silent
    /// What it began to say was not complete within `timeouts.head`.
    case timeout

    /// The word for it in the log.
    var token: String {
        switch self {
        case .unknownDestination: "transparent-destination-unknown"
        case .direct: "transparent-direct"
        case .ownConnection: "transparent-own-connection"
        case .malformedTLS: "transparent-tls-malformed"
        case .malformedName: "transparent-name-malformed"
        case .silent: "transparent-silent"
        case .timeout: "transparent-timeout"
        }
    }

    /// What is wrong, and what was expected.
    var explanation: String {
        switch self {
        case .unknownDestination(let error):
            "the system does not know where the connection was going (\(error)): it was made to "
                + "this port itself, or no rule of the firewall has led it here"
        case .direct(let endpoint):
            "the connection was made to \(endpoint), where the gateway itself listens: expected "
                + "one to another address, led here by a rule of the firewall"
        case .ownConnection(let endpoint):
            "a rule of the firewall has led the gateway's own connection to \(endpoint) back to "
                + "it: exempt the gateway's user from the rule"
        case .malformedTLS(let error): "the client's first TLS message cannot be read: \(error)"
        case .malformedName: "the name that the client's TLS asks for is no host name"
        case .silent:
            "the client said nothing within timeouts.head; where servers speak first, the port "
                + "belongs in serverFirst"
        case .timeout: "what the client began to say was not complete within timeouts.head"
        }
    }

    /// Where it is counted.
    var counter: WorkerCounter {
        switch self {
        case .unknownDestination: .transparentDestinationUnknown
        case .direct: .transparentDirect
        case .ownConnection: .transparentOwnConnection
        case .malformedTLS, .malformedName: .transparentMalformed
        case .silent: .transparentSilent
        case .timeout: .transparentTimeout
        }
    }
}

extension Worker {
    /// Counts a connection at a transparent listener that is closed before there is a request, and
    /// logs it at times.
    func note(_ refusal: TransparentRefusalReason, from peer: Endpoint, on ingress: Ingress) {
        metrics.add(refusal.counter)
        guard mayLogRefusal() else { return }
        shared.logger.warning(
            "a connection at a transparent listener is closed",
            metadata: [
                "listener": "\(ingress.name)", "client": "\(String(peer.clientText))",
                "reason": "\(refusal.token)", "detail": "\(refusal.explanation)",
            ])
    }
}
