import CLinux
import COpenSSL
import Trust

/// Why a TLS connection failed. The descriptions are from a client's view; ``text(of:)`` also has a
/// server's.
package enum TLSError: Error, Hashable, Sendable {
    /// The server was refused by the security policy: nothing was sent but an alert.
    case trust(TrustError)
    /// The peer sent a fatal alert: its code (RFC 8446 §6) and name.
    case alertReceived(code: UInt8, name: String)
    /// The server requested a client certificate, received none, and sent this alert.
    case certificateRequired(TLSAlert)
    /// The server rejected the client's certificate with this alert.
    case certificateRejected(TLSAlert)
    /// No version is allowed by both sides.
    case versionRefused
    /// What the peer sent is not TLS.
    case notTLS
    /// What the peer sent is HTTP in clear text: its first line, in printable ASCII.
    case clearText(String)
    /// The connection ended in the handshake before the peer had sent a byte: with this errno, or
    /// by being closed if there is none.
    case unanswered(errorNumber: Int32?)
    /// The connection ended without the peer's close_notify.
    case truncated
    /// The socket failed with this errno.
    case transport(errorNumber: Int32)
    /// The peer broke the protocol; with the library's message.
    case protocolViolation(String)
    /// More handshake messages after the handshake than any honest peer sends.
    case tooManyMessages
    /// The handshake ended without proof of the server's identity.
    case unauthenticated
    /// The server sent its client this alert instead of a certificate.
    case identityRefused(TLSAlert)
    /// The server refused its client's certificate; with the library's message.
    case clientCertificate(String)
    /// The policy trusts the server, but the caller's own review rejected it.
    case refusedByReview
    /// The library could not create the connection's state; with its message.
    case resources(String)
}

extension TLSError {
    /// The alert with which the peer ended the connection, or `nil` if it ended otherwise or not at
    /// all.
    package var receivedAlert: TLSAlert? {
        switch self {
        case .alertReceived(let code, _): TLSAlert(code: code)
        case .certificateRequired(let alert), .certificateRejected(let alert): alert
        default: nil
        }
    }
}

extension TLSError {
    /// Whether the peer seems to speak clear text.
    package var looksLikeClearText: Bool {
        switch self {
        case .notTLS, .clearText, .unanswered: true
        default: false
        }
    }
}

extension TLSError {
    /// The same error for a peer that has spoken TLS on its port before: its ending a handshake
    /// without a byte then does not suggest clear text.
    package var onProvenPort: TLSError {
        switch self {
        case .unanswered(nil): .truncated
        case .unanswered(let number?): .transport(errorNumber: number)
        default: self
        }
    }
}

extension TLSError: CustomStringConvertible {
    /// One sentence for an error reply and the log.
    package var description: String { text(of: "server") }

    /// The same sentence, with `peer` as the name of the other side.
    package func text(of peer: String) -> String {
        switch self {
        case .trust(let failure): failure.description
        case .alertReceived(let code, let name): "the \(peer) sent the alert \(name) (\(code))"
        case .certificateRequired(let alert):
            "the \(peer) requires a client certificate and was given none: it sent \(alert)"
        case .certificateRejected(let alert):
            "the \(peer) does not accept the client certificate: it sent \(alert)"
        case .versionRefused: "the \(peer) supports no TLS version that is allowed"
        case .notTLS: "the \(peer) sent something other than TLS"
        case .clearText(let line): "the \(peer) answered in clear text: \(line)"
        case .unanswered(let number):
            (number.map { transportText($0, peer) } ?? "the \(peer) closed the connection")
                + " before any TLS data arrived, as a clear-text port would"
        case .truncated: "the \(peer) closed the connection without ending the TLS session"
        case .transport(let number): transportText(number, peer)
        case .protocolViolation(let reason): "the \(peer) broke the TLS protocol: \(reason)"
        case .tooManyMessages:
            "the \(peer) sent more than \(SocketState.lateMessageLimit) handshake messages "
                + "after the handshake (key updates, session tickets)"
        case .unauthenticated: "the handshake did not prove who the \(peer) is"
        case .identityRefused(let alert):
            "the \(peer) is sent the alert \(alert) instead of a certificate"
        case .clientCertificate(let reason): "the \(peer)'s certificate is refused: \(reason)"
        case .refusedByReview: "the \(peer) was refused by the session's own review"
        case .resources(let reason): "cannot create TLS state: \(reason)"
        }
    }
}

/// Why a context or its trust anchors could not be created: a configuration error.
package enum TLSContextError: Error, Hashable, Sendable {
    /// A trust anchor file that contains something else; `name` is what the configuration calls it.
    case rootsFile(name: String, PinError)
    /// A certificate in a trust anchor file, by its position.
    case root(name: String, index: Int, CertificateError)
    /// A trust anchor of a pinset, by its position.
    case anchor(pinset: String, index: Int, CertificateError)
    /// A pin of a pinset.
    case pin(pinset: String, CertificateError)
    /// A pinset that no server can pass.
    case pinset(name: String, PinsetError)
    /// A server's certificate or key that cannot be used.
    case identity(TLSIdentityError)
    /// The library refused; with its message.
    case library(String)
}

extension TLSContextError: CustomStringConvertible {
    /// One sentence for a configuration error.
    package var description: String {
        switch self {
        case .rootsFile(let name, let error): "roots \(name): \(error.problem)"
        case .root(let name, let index, let error):
            "roots \(name), certificate \(index + 1): \(error)"
        case .anchor(let pinset, let index, let error):
            "pinset \(pinset), anchor \(index + 1): \(error)"
        case .pin(let pinset, let error): "pinset \(pinset): \(error)"
        case .pinset(let name, let problem): "pinset \(name): \(problem.problem)"
        case .identity(let error): "\(error)"
        case .library(let reason): "the TLS library refused: \(reason)"
        }
    }
}

/// The library's error queue of this thread. Whoever causes a call to fail drains it, so that a
/// stale entry can never be taken for the reason of a later failure.
enum ErrorQueue {
    /// Empties the queue; costs one thread-local read if it is already empty.
    @inline(__always)
    static func clear() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// The first queued error, as the library's text; empties the queue.
    static func drain() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        return text(code)
    }

    static func text(_ code: UInt) -> String {
        guard code != 0 else { return "unknown" }
        guard let reason = ERR_reason_error_string(code) else { return "error \(code)" }
        return String(cString: reason)
    }
}

extension TLSError {
    /// The error that an SSL_ERROR_SSL stands for; empties the queue.
    static func fromQueue() -> TLSError {
        let code = ERR_get_error()
        ERR_clear_error()
        guard pinfold_error_library(code) == UInt(ERR_LIB_SSL) else {
            return .protocolViolation(ErrorQueue.text(code))
        }
        let reason = Int32(truncatingIfNeeded: pinfold_error_reason(code))
        switch reason {
        case SSL_R_UNEXPECTED_EOF_WHILE_READING:
            return .truncated
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST,
            SSL_R_PACKET_LENGTH_TOO_LONG:
            return .notTLS
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
            return .versionRefused
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
            return .clientCertificate("none was sent")
        case SSL_AD_REASON_OFFSET...(SSL_AD_REASON_OFFSET + 255):
            let alert = UInt8(truncatingIfNeeded: reason - SSL_AD_REASON_OFFSET)
            return .alertReceived(code: alert, name: TLSAlert(code: alert).name)
        default:
            return .protocolViolation(ErrorQueue.text(code))
        }
    }
}

/// A description of what happened to the connection, for the errnos that connections fail with.
private func transportText(_ number: Int32, _ peer: String) -> String {
    switch number {
    case ECONNRESET: "the \(peer) reset the connection"
    case EPIPE: "the \(peer) had closed the connection"
    case ETIMEDOUT: "the connection timed out"
    case EHOSTUNREACH, ENETUNREACH: "the \(peer) became unreachable"
    default: "the connection failed (errno \(number))"
    }
}
