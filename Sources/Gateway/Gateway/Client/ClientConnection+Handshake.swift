import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

// The beginning and the end of a connection over TLS.
extension ClientConnection {
    /// Takes one step in the handshake; returns `false` if the next one needs an event.
    func continueHandshake() -> Bool {
        budget.spend(.exchange)
        switch transport.handshake() {
        case .complete:
            handshakeEnded()
            return true
        case .wantRead, .wantWrite, .wantIdentity: return false
        case .turnIsOver:
            budget.exhaust()
            return true
        case .failed(let error):
            handshakeFailed(error)
            return http.isOpen
        }
    }

    private func handshakeEnded() {
        opening = .done
        handle(.opened)
        environment.release(self)
        loop.setDeadline(self, after: timeouts.headMilliseconds)
        // Others go first: a handshake costs as much as many exchanges.
        budget.exhaust()
        guard let tls = transport.tls as? TLSServerConnection else { return }
        let session = ClientSession(
            tls, readsNames: ingress.methods.contains(.certificate),
            inTunnelTo: tunnel?.authority, around: tunnel?.ingress.session)
        secureIngress = ingress.of(session)
        worker.metrics.add(.clientHandshake(session.version, isResumed: tls.isResumed))
        worker.metrics.add(.clientHandshake(session.carrier))
        if environment.traces { trace(session, tls) }
        if agreesOnHTTP2(session) { becomeHTTP2() }
    }

    private func trace(_ session: ClientSession, _ tls: TLSServerConnection) {
        environment.trace(
            "tls handshake with a client ended",
            [
                "listener": "\(ingress.name)", "client": "\(String(peer.clientText))",
                "sni": "\(tls.clientHello?.serverName ?? "")",
                "version": "\(session.version.text)", "alpn": "\(tls.applicationProtocol ?? "")",
                "cipher": "\(tls.cipherSuite ?? "")",
                "resumed": "\(tls.isResumed)", "subject": "\(session.subject ?? "")",
            ])
    }

    /// Called when the handshake has failed, so that no response can be sent. An alert, if there
    /// is one, has been sent. What the client still sends is read for a while, because its system
    /// would otherwise discard the alert.
    ///
    /// - Parameter error: `nil` if the handshake has timed out.
    func handshakeFailed(_ error: TLSError?) {
        worker.metrics.add(.clientHandshakeFailure(error))
        if isUntried { handshakeEndedUntried(error) }
        if tunnel == nil, let error { reportRejection(error) }
        if environment.traces {
            environment.trace(
                "tls handshake with a client failed",
                [
                    "listener": "\(ingress.name)", "client": "\(String(peer.clientText))",
                    "sni": "\(transport.tls?.serverName ?? "")",
                    "detail": "\(error?.text(of: "client") ?? "time-out")",
                    "alert_sent": "\(transport.tls?.sentAlert.map { "\($0)" } ?? "none")",
                ])
        }
        guard let error, error.leavesSocketUsable, account != nil else { return close() }
        environment.release(self)
        opening = .failed
        handle(.lingers)
    }

    /// Logs that a client does not trust the listener's certificate; there is no exchange that
    /// would be in the access log. Those of intercepted hosts are reported with their tunnels.
    private func reportRejection(_ error: TLSError) {
        guard case .alertReceived(let code, _) = error, TLSAlert(code: code).isAboutCertificate
        else { return }
        worker.shared.logger.warning(
            "a client does not accept the certificate of a listener",
            metadata: [
                "listener": "\(ingress.name)", "client": "\(String(peer.clientText))",
                "sni": "\(transport.tls?.serverName ?? "")",
                "detail": "\(error.text(of: "client"))",
            ])
    }

    /// Ends the sending direction, as soon as the socket accepts the end of the TLS session.
    func finishSending() {
        guard !hasFinishedSending, transport.finishSending() else { return }
        hasFinishedSending = true
        if transport.isSecure { Sockets.shutdownWrite(descriptor) }
    }
}

extension TLSError {
    /// Whether the client may still be there, and read what it was sent.
    fileprivate var leavesSocketUsable: Bool {
        switch self {
        case .truncated, .transport, .unanswered, .resources, .alertReceived, .certificateRequired,
            .certificateRejected:
            false
        case .trust, .versionRefused, .notTLS, .clearText, .protocolViolation, .tooManyMessages,
            .unauthenticated, .identityRefused, .clientCertificate, .refusedByReview:
            true
        }
    }
}

extension WorkerCounter {
    fileprivate static func clientHandshake(_ version: TLSVersion, isResumed: Bool) -> Self {
        switch version {
        case .tls10: isResumed ? .clientHandshakesTLS10Resumed : .clientHandshakesTLS10
        case .tls11: isResumed ? .clientHandshakesTLS11Resumed : .clientHandshakesTLS11
        case .tls12: isResumed ? .clientHandshakesTLS12Resumed : .clientHandshakesTLS12
        case .tls13: isResumed ? .clientHandshakesTLS13Resumed : .clientHandshakesTLS13
        }
    }

    fileprivate static func clientHandshake(_ carrier: HTTPCarrier) -> Self {
        switch carrier {
        case .http1: .clientHandshakesHTTP1
        case .http2: .clientHandshakesHTTP2
        }
    }

    /// - Parameter error: `nil` for a timeout.
    fileprivate static func clientHandshakeFailure(_ error: TLSError?) -> Self {
        switch error {
        case nil: .clientHandshakesTimeout
        case .notTLS, .clearText: .clientHandshakesNotTLS
        case .versionRefused: .clientHandshakesVersionRefused
        case .clientCertificate: .clientHandshakesCertificateRefused
        case .identityRefused(.handshakeFailure): .clientHandshakesServerRefused
        case .identityRefused: .clientHandshakesNameRefused
        case .alertReceived(let code, _):
            TLSAlert(code: code).isAboutCertificate
                ? .clientHandshakesUntrusted : .clientHandshakesAlert
        case .truncated, .transport, .unanswered: .clientHandshakesClosed
        case .trust, .protocolViolation, .tooManyMessages, .unauthenticated, .resources,
            .certificateRequired, .certificateRejected, .refusedByReview:
            .clientHandshakesProtocolError
        }
    }
}
