import PinfoldEngine
import PinfoldTLS
import Trust

// Explanations of faults for users of the library. The engine's own texts are for operators of a
// gateway, and some of them name configuration keys.
extension ClientError {
    /// One sentence: what was wrong, and what was expected where that helps.
    static func explanation(of fault: ExchangeError) -> String {
        switch fault {
        case .tlsFailed(let error): "no secure connection to the server: \(text(for: error))"
        case .proxy(.unreachable(.connectFailed)): fault.explanation
        case .proxy(.unreachable(let inner)):
            "\(meaning(of: fault.reason)): \(explanation(of: inner))"
        // These describe what the exchange has met, in terms of HTTP and of the system.
        case .request, .fields, .response, .connectFailed, .unixSocketFailed, .upstreamReset,
            .proxy,
            .upstreamMalformed, .upstreamStreamReset, .upstreamHTTP2:
            fault.explanation
        case .upstreamUnanswered(let error):
            (error.map { ExchangeError.upstreamReset($0).explanation } ?? meaning(of: fault.reason))
                + "; if it speaks TLS on this port, expected an https URL"
        case .unconfirmed(let cause): explanation(of: cause)
        case .server(.upstreamSpeaksTLS): "\(meaning(of: fault.reason)); expected an https URL"
        default: meaning(of: fault.reason)
        }
    }

    /// What a reason means for a user of the library.
    static func meaning(of reason: PinfoldEngine.Reason) -> String {
        switch reason {
        case .access(.clearTextRefused), .access(.pinnedPortRefused):
            "the security policy has pins, which prove nothing without TLS; expected an https URL"
        case .access(.destinationRefused): "connections to the address are not allowed"
        // These concern gateways with several clients, and their rules. No session has any.
        case .access, .authentication, .tunnel, .purge, .transformation, .profile, .revocation:
            "the request was refused"
        case .gateway(let reason): meaning(of: reason)
        case .name(.clientLimit): "too many names are being looked up"
        case .name(.cancelled): "the runtime was closed"
        case .server(.eventStreamTimeout):
            "the server sent nothing on its event stream for too long"
        case .server(.upstreamHTTP2NotSpoken): "the server does not speak HTTP/2"
        // These concern gateways as well.
        case .server(.noServer): "no server can be asked"
        case .proxy(.nameUnchecked): "the addresses of the server's name cannot be checked"
        case .trust: "the server is not trusted"
        case .tls(.clientCertificateRequired):
            "the server requires a client certificate, and the session has none for its host"
        case .tls(.clientCertificateRejected):
            "the server does not accept the session's client certificate"
        case .request, .fields, .response, .name, .tls, .server, .proxy: reason.entry.meaning
        }
    }

    private static func meaning(of reason: GatewayReason) -> String {
        switch reason {
        case .descriptorsExhausted: "the process has no file descriptors left"
        case .superseded: "the session ended while the request was waiting"
        case .clientTimeout: "the response was not read for too long"
        case .tunnelIdleTimeout, .tunnelPolicyChanged: "the tunnel was closed"
        case .headBuffersFull: "the memory for incomplete messages is full"
        case .clientExchangeLimit: "too many requests are active"
        default: reason.entry.meaning
        }
    }

    /// The error's text without the engine's name for the session's pins.
    private static func text(for error: TLSError) -> String {
        guard case .trust(var failure) = error else { return "\(error)" }
        failure.pinset = nil
        return "\(failure)"
    }

    /// A policy that nobody could pass.
    init(_ problem: PinsetError) {
        let text =
            switch problem {
            case .pinsetWithoutPins:
                "the mode compares pins; expected at least one pin, or mode none"
            case .keyPinInCertificateMode:
                "mode certificate compares certificates; expected pins that are certificates or "
                    + "fingerprints, or mode publicKey"
            case .hostNameWithoutPins:
                "allowsInvalidCertificates without pins proves no host name; expected pins, or "
                    + "validatesDomainName to be false"
            }
        self.init(.invalidSecurityPolicy, text)
    }

    /// Creates the error for a policy whose pins or anchors cannot be used.
    init(_ error: TLSContextError) {
        let text =
            switch error {
            case .pin(_, let error): "a pin: \(error)"
            case .anchor(_, let index, let error), .root(_, let index, let error):
                "anchors[\(index)]: \(error)"
            case .pinset(_, let problem): ClientError(problem).explanation
            case .rootsFile, .identity, .library: "\(error)"
            }
        self.init(.invalidSecurityPolicy, text, underlying: error)
    }
}
