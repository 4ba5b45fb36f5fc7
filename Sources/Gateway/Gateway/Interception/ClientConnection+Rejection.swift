import EventLoop
import HTTPCore
import Logging
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

// Whether the clients of intercepted tunnels accept the certificates presented to them. Those that
// keep rejecting them are no longer intercepted for a while, if the host's entry allows its tunnels
// to pass, or inspects them.

/// A client's connection that may be the inside of an intercepted tunnel.
protocol InterceptedConnection: AdmittedConnection {
    var worker: Worker { get }
    var transport: Transport { get }
    var peer: Endpoint { get }
    /// Whether it is the inside of a tunnel in which nothing has been requested yet, so that it is
    /// unknown whether its client accepts the certificate.
    var isUntried: Bool { get set }
}

extension InterceptedConnection {
    /// Called when a request has come through the tunnel.
    func certificateAccepted() {
        isUntried = false
        guard let tunnel, let account else { return }
        tunnel.interception.rejections.accepted(account.network, host: tunnel.authority.host)
    }

    /// Called when the handshake has failed.
    /// - Parameter error: `nil` if it has timed out.
    func handshakeEndedUntried(_ error: TLSError?) {
        // A client that sends nothing after CONNECT has seen no certificate.
        let hasSaidHello = clientHello != nil
        switch error {
        // The gateway's own doing: the server, or the name, is refused.
        case .identityRefused, .resources: return
        case nil: gaveUp(hasSaidHello ? .silentInHandshake : .noHello)
        case .alertReceived(let code, _)?: gaveUp(.alert(TLSAlert(code: code)))
        case .truncated?, .transport?:
            gaveUp(hasSaidHello ? .closedInHandshake : .noHello)
        case .notTLS?: gaveUp(.notTLS)
        case let error?:
            if let tunnel, !offers(oneOf: tunnel.offer) {
                gaveUp(.noCommonProtocol(tunnel.offer))
            } else {
                gaveUp(.failed(error))
            }
        }
    }

    /// Called when the client has ended the connection, or has been silent for too long, after the
    /// handshake. In TLS 1.3 it may notice a problem with the certificate after the gateway
    /// considers the handshake complete.
    func endedUntried() {
        if case .alertReceived(let code, _)? = transport.tls?.failure {
            return gaveUp(.alert(TLSAlert(code: code)))
        }
        gaveUp(.closedWithoutRequest)
    }

    private var clientHello: TLSClientHello? {
        (transport.tls as? TLSServerConnection)?.clientHello
    }

    /// A client that does not use ALPN speaks HTTP/1.1.
    private func offers(oneOf ours: ProtocolOffer) -> Bool {
        guard let offered = clientHello?.applicationProtocols else { return true }
        return ours.names.contains { offered.contains($0) }
    }

    private func gaveUp(_ reason: AbandonmentReason) {
        guard let tunnel else { return }
        isUntried = false
        worker.interceptionGivenUp(
            tunnel, by: peer, reason, offering: clientHello?.applicationProtocols)
        if let rejection = reason.rejection { worker.counts(rejection, of: tunnel) }
    }
}

/// How a client gave up an intercepted tunnel without a request, as far as the gateway can tell.
private enum AbandonmentReason {
    case alert(TLSAlert)
    /// It ended the connection before sending a ClientHello, or was silent for too long.
    case noHello
    /// What it sent is not TLS.
    case notTLS
    case closedInHandshake
    case silentInHandshake
    /// It offers protocols by ALPN, but none of those that are spoken in its tunnel.
    case noCommonProtocol(ProtocolOffer)
    case failed(TLSError)
    case closedWithoutRequest

    /// The text in the log.
    var text: String {
        switch self {
        case .alert(let alert): "alert \(alert.name)"
        case .noHello: "no ClientHello"
        case .notTLS: "not TLS"
        case .closedInHandshake: "closed after the certificate"
        case .silentInHandshake: "silent after the certificate"
        case .noCommonProtocol(let ours):
            "no common protocol: \(ours.names.joined(separator: " or ")) is not offered"
        case .failed(let error): "handshake failed: \(error.text(of: "client"))"
        case .closedWithoutRequest: "closed after the handshake, without a request"
        }
    }

    /// What it shows about the certificate, if the client has seen it; `nil` for nothing.
    var rejection: RejectionSignal? {
        switch self {
        case .alert(let alert): alert.isAboutCertificate ? .alert : .close
        case .closedInHandshake, .closedWithoutRequest: .close
        case .noHello, .notTLS, .silentInHandshake, .noCommonProtocol, .failed: nil
        }
    }
}

extension Worker {
    /// Called when a client in an intercepted tunnel has given up.
    fileprivate func interceptionGivenUp(
        _ tunnel: InterceptedTunnel, by peer: Endpoint, _ reason: AbandonmentReason,
        offering protocols: [String]?
    ) {
        metrics.countGivenUp(host: tunnel.hostLabel)
        let metadata: Logger.Metadata = [
            "client": "\(String(peer.address.clientText))", "authority": "\(tunnel.authority)",
            "entry": "\(shared.labels.name(host: tunnel.hostLabel))",
            "alpn": "\(protocols?.joined(separator: ",") ?? "none")", "sign": "\(reason.text)",
        ]
        guard case .alert(let alert) = reason, alert.isAboutCertificate else {
            // Browsers, too, open tunnels in advance and do not use them all.
            return shared.logger.info(
                "a client gave up an intercepted tunnel without a request", metadata: metadata)
        }
        metrics.countRejection(host: tunnel.hostLabel)
        shared.logger.warning(
            """
            a client does not accept the certificate of an intercepted host; install the CA on it \
            (`pinfold ca export`), or write tunnel: inspect for the host (and intercept: auto, to \
            intercept the clients that accept it), or intercept: false
            """, metadata: metadata)
    }

    /// Counts a rejection, and logs it if the client is no longer intercepted because of it.
    fileprivate func counts(_ signal: RejectionSignal, of tunnel: InterceptedTunnel) {
        let rule = policy.settings(of: tunnel)
        guard policy.fallsBack(tunnel.authority, by: rule), let client = tunnel.account?.network,
            tunnel.interception.rejections.note(
                signal, by: client, host: tunnel.authority.host, at: loop.monotonicNow)
        else { return }
        let fallback = policy.inspects(tunnel.authority, by: rule) ? "inspected" : "relayed unread"
        shared.logger.warning(
            """
            a client keeps rejecting the certificates of an intercepted host: its tunnels to this \
            host are \(fallback) for interception.rejections.period; install the CA on it \
            (`pinfold ca export`), or write intercept: false for the host
            """,
            metadata: [
                "client": "\(client.clientDescription)", "authority": "\(tunnel.authority)",
                "sign": "\(signal)",
            ])
    }
}
