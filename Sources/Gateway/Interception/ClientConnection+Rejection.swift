import Addressing
import Engine
import TLS

// Whether the clients of intercepted tunnels accept the certificates that they are shown. Those
// that keep rejecting them are no longer intercepted, for a while, where the host's entry says that
// tunnels pass, or are inspected.
extension ClientConnection {
    /// A request has come through the tunnel.
    func certificateAccepted() {
        isUntried = false
        guard let tunnel, let account else { return }
        tunnel.interception.rejections.accepted(account.network, host: tunnel.authority.host)
    }

    /// The handshake has failed.
    /// - Parameter error: nil: it has taken too long.
    func handshakeEndedUntried(_ error: TLSError?) {
        // Who says nothing after CONNECT has seen no certificate.
        guard (transport.tls as? TLSServerConnection)?.clientHello != nil else { return }
        switch error {
        case .alertReceived, .truncated, .transport: rejected(error)
        default: break
        }
    }

    /// The client has ended the connection after the handshake. In TLS 1.3 it may see the
    /// certificate's fault after the gateway takes the handshake for complete.
    func endedUntried() {
        guard state == .head, !parser.isWithinHead, input?.isEmpty ?? true else { return }
        rejected(transport.tls?.failure)
    }

    private func rejected(_ error: TLSError?) {
        guard let tunnel else { return }
        isUntried = false
        guard case .alertReceived(let code, _) = error, TLSAlert(code: code).isAboutCertificate
        else { return worker.counts(.close, of: tunnel) }
        worker.certificateRejected(tunnel, by: peer, TLSAlert(code: code))
        worker.counts(.alert, of: tunnel)
    }
}

extension Worker {
    /// A client in an intercepted tunnel does not accept the certificate that it was shown.
    fileprivate func certificateRejected(
        _ tunnel: InterceptedTunnel, by peer: Endpoint, _ alert: TLSAlert
    ) {
        metrics.countRejection(host: tunnel.hostLabel)
        shared.logger.warning(
            """
            a client does not accept the certificate of the interception authority; install the \
            authority on it (`pinfold ca export`), or write tunnel: inspect for the host (and \
            intercept: auto, to intercept clients that accept it), or intercept: false
            """,
            metadata: [
                "client": "\(peer.address)", "authority": "\(tunnel.authority)",
                "alert": "\(alert.name)",
            ])
    }

    /// Counts a rejection, and says so if the client is given up for it.
    fileprivate func counts(_ sign: RejectionSign, of tunnel: InterceptedTunnel) {
        guard policy.fallsBack(tunnel.authority), let client = tunnel.account?.network,
            tunnel.interception.rejections.note(
                sign, by: client, host: tunnel.authority.host, at: loop.monotonicNow)
        else { return }
        let fallback = policy.inspects(tunnel.authority) ? "inspected" : "relayed unseen"
        shared.logger.warning(
            """
            a client keeps rejecting the certificates of the interception authority: its tunnels \
            to this host are \(fallback) for interception.rejections.period; install the \
            authority on it (`pinfold ca export`), or write intercept: false for the host
            """,
            metadata: [
                "client": "\(client)", "authority": "\(tunnel.authority)",
                "sign": "\(sign)",
            ])
    }
}
