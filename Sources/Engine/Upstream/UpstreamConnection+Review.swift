import TLS

/// A server that the policy trusts, as it is shown to a ``ServerReviewer``.
package struct ReviewedServer: Sendable {
    /// As the request names it; an address without brackets.
    package let host: String
    package let port: UInt16
    /// DER of the chain that was verified, the server's own certificate first; that one alone where
    /// the policy asks for no valid chain.
    package let certificates: [[UInt8]]
}

/// Looks at each server that the policy trusts, before anything is sent to it, and may refuse it.
///
/// It is called by the loop's thread, calls `answer` once, from whatever thread, and returns what
/// is called when nobody waits for the answer any more.
package typealias ServerReviewer =
    @Sendable (
        _ server: ReviewedServer, _ answer: @escaping @Sendable (_ isTrusted: Bool) -> Void
    ) -> @Sendable () -> Void

// The time between a handshake and the first request, where servers are reviewed. No session is
// resumed then (`PolicySnapshot`), so that each handshake shows the whole chain.
extension UpstreamConnection {
    /// Has the server reviewed; false: nobody reviews it.
    func beginReview(of tls: TLSClientConnection) -> Bool {
        // A proxy is no server of the requests.
        guard let reviewer = environment.shared.reviewer, origin.forwards == nil else {
            return false
        }
        let certificates =
            tls.verified.isEmpty ? tls.certificateDER.map { [$0] } ?? [] : tls.verified
        let (token, mailbox) = (token, environment.mailbox)
        // As long again as the handshake may take.
        environment.loop.setDeadline(self, after: origin.timeouts.connectMilliseconds)
        endReview = reviewer(
            ReviewedServer(host: origin.key.host, port: origin.key.port, certificates: certificates)
        ) { mailbox.post(.reviewed(token, isTrusted: $0)) }
        return true
    }

    /// The reviewer's answer.
    func reviewed(isTrusted: Bool) {
        guard state == .handshaking, endReview != nil,
            let tls = transport.tls as? TLSClientConnection
        else { return }
        endReview = nil
        if isTrusted { return established(tls) }
        close()
        pool.handshakeEnded(self, .tlsFailed(.refusedByReview))
    }
}
