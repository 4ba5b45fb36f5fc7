import Clocks
import PinfoldTLS

/// A server that the policy trusts, as presented to a ``ServerReviewer``.
package struct ReviewedServer: Sendable {
    /// The host as the request names it; an address without brackets.
    package let host: String
    package let port: UInt16
    /// The verified chain in DER, the server's own certificate first; only that one if the policy
    /// does not require a valid chain.
    package let certificates: [[UInt8]]
    /// The names, in DER, of the authorities whose client certificates it accepts; empty if it
    /// accepts any; `nil` if it does not ask for one, or if the policy has one for it.
    package let acceptedAuthorities: [[UInt8]]?
}

/// The verdict of a ``ServerReviewer``.
package enum ReviewAnswer: Sendable {
    case refused
    /// It is trusted. If it asks for a certificate, this identity is used.
    case trusted(TLSClientIdentity?)
}

/// Reviews each server that the policy trusts before anything is sent to it. It may refuse the
/// server, or choose the client's identity.
///
/// It is called on the loop's thread, calls `answer` once, on any thread, and returns a function
/// that is called if the answer is no longer needed.
package typealias ServerReviewer =
    @Sendable (
        _ server: ReviewedServer, _ answer: @escaping @Sendable (ReviewAnswer) -> Void
    ) -> @Sendable () -> Void

// Reviews of servers, between the handshake and the first request; or, if the server asks for a
// certificate, in the handshake before the client's certificate. No session is resumed then
// (`PolicySnapshot`), so that each handshake has the whole chain.
extension UpstreamConnection {
    /// Has the server reviewed, once. Returns false if there is no reviewer, or it has been
    /// reviewed.
    ///
    /// - Parameter asksForIdentity: whether the handshake waits for the client's certificate.
    func beginReview(of tls: TLSClientConnection, asksForIdentity: Bool = false) -> Bool {
        // A proxy is not the server that requests are for.
        guard case .due = review, let reviewer = environment.shared.reviewer,
            origin.forwards == nil
        else { return false }
        let certificates =
            tls.verified.isEmpty ? tls.certificateDER.map { [$0] } ?? [] : tls.verified
        let (token, mailbox) = (token, environment.mailbox)
        // The review may take as long as the handshake.
        environment.loop.setDeadline(self, after: origin.timeouts.connectMilliseconds)
        reviewStarted = Clock.monotonicMicroseconds()
        timeline.enter(.review, at: reviewStarted)
        let cancel = reviewer(
            ReviewedServer(
                host: origin.key.host, port: origin.key.port, certificates: certificates,
                acceptedAuthorities: asksForIdentity ? tls.acceptedAuthorities : nil)
        ) { mailbox.post(.reviewed(token, $0)) }
        review = .underWay(cancel: cancel)
        return true
    }

    /// Handles the reviewer's answer.
    func reviewed(_ answer: ReviewAnswer) {
        guard http.phase == .opening, case .underWay = review,
            let tls = transport.tls as? TLSClientConnection
        else { return }
        review = .over
        switch answer {
        case .refused:
            close()
            pool.handshakeEnded(self, .tlsFailed(.refusedByReview))
        case .trusted where tls.isOpen: established(tls)
        case .trusted(let identity):
            // Only the handshake's own time counts.
            let now = Clock.monotonicMicroseconds()
            handshakeStarted += now - reviewStarted
            timeline.enter(.tls, at: now)
            environment.loop.setDeadline(self, after: origin.timeouts.connectMilliseconds)
            tls.answer(identity)
            continueHandshake()
        }
    }
}
