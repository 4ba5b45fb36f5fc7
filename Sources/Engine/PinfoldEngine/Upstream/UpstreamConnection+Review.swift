import Clocks
import PinfoldTLS

/// A server that the policy trusts, as it is shown to a ``ServerReviewer``.
package struct ReviewedServer: Sendable {
    /// As the request names it; an address without brackets.
    package let host: String
    package let port: UInt16
    /// DER of the chain that was verified, the server's own certificate first; that one alone where
    /// the policy asks for no valid chain.
    package let certificates: [[UInt8]]
    /// The names, in DER, of the authorities whose certificates it accepts of the client; empty: it
    /// accepts any; nil: it asks for none, or the policy has one for it.
    package let acceptedAuthorities: [[UInt8]]?
}

/// What a ``ServerReviewer`` says of a server.
package enum ReviewAnswer: Sendable {
    case refused
    /// It is trusted, and shown this where it asks for a certificate.
    case trusted(TLSClientIdentity?)
}

/// Looks at each server that the policy trusts, before anything is sent to it, and may refuse it,
/// or say what the client proves itself with.
///
/// It is called by the loop's thread, calls `answer` once, from whatever thread, and returns what
/// is called when nobody waits for the answer any more.
package typealias ServerReviewer =
    @Sendable (
        _ server: ReviewedServer, _ answer: @escaping @Sendable (ReviewAnswer) -> Void
    ) -> @Sendable () -> Void

// The time between a handshake and the first request, where servers are reviewed; or that in the
// handshake after which the client's certificate would follow, where the server asks for one. No
// session is resumed then (`PolicySnapshot`), so that each handshake shows the whole chain.
extension UpstreamConnection {
    /// Has the server reviewed, once; false: nobody reviews it, or it has been.
    ///
    /// - Parameter asksForIdentity: The handshake waits for the client's certificate.
    func beginReview(of tls: TLSClientConnection, asksForIdentity: Bool = false) -> Bool {
        // A proxy is no server of the requests.
        guard !isReviewed, let reviewer = environment.shared.reviewer, origin.forwards == nil
        else { return false }
        isReviewed = true
        let certificates =
            tls.verified.isEmpty ? tls.certificateDER.map { [$0] } ?? [] : tls.verified
        let (token, mailbox) = (token, environment.mailbox)
        // As long again as the handshake may take.
        environment.loop.setDeadline(self, after: origin.timeouts.connectMilliseconds)
        reviewStarted = Clock.monotonicMicroseconds()
        endReview = reviewer(
            ReviewedServer(
                host: origin.key.host, port: origin.key.port, certificates: certificates,
                acceptedAuthorities: asksForIdentity ? tls.acceptedAuthorities : nil)
        ) { mailbox.post(.reviewed(token, $0)) }
        return true
    }

    /// The reviewer's answer.
    func reviewed(_ answer: ReviewAnswer) {
        guard state == .handshaking, endReview != nil,
            let tls = transport.tls as? TLSClientConnection
        else { return }
        endReview = nil
        switch answer {
        case .refused:
            close()
            pool.handshakeEnded(self, .tlsFailed(.refusedByReview))
        case .trusted where tls.isOpen: established(tls)
        case .trusted(let identity):
            // The handshake's own time counts.
            handshakeStarted += Clock.monotonicMicroseconds() - reviewStarted
            environment.loop.setDeadline(self, after: origin.timeouts.connectMilliseconds)
            tls.answer(identity)
            continueHandshake()
        }
    }
}
