import EventLoop
import TLS

// The begin and the end of a connection over TLS.
extension ClientConnection {
    /// Makes one step in the handshake; false when the next one needs an event.
    func continueHandshake() -> Bool {
        budget.spend(.exchange)
        switch transport.handshake() {
        case .complete:
            state = .head
            worker.loop.setDeadline(self, after: timeouts.headMilliseconds)
            return true
        case .wantRead, .wantWrite, .wantIdentity: return false
        case .turnIsOver:
            budget.exhaust()
            return true
        case .failed(let error):
            handshakeFailed(error.text(of: "client"))
            return false
        }
    }

    /// Closes: there is nobody to answer. An alert, if there is one, has been sent.
    func handshakeFailed(_ detail: @autoclosure () -> String) {
        if environment.traces {
            environment.trace(
                "tls handshake with a client failed",
                [
                    "listener": "\(ingress.name)", "client": "\(peer)",
                    "sni": "\(transport.tls?.serverName ?? "")", "detail": "\(detail())",
                    "alert_sent": "\(transport.tls?.sentAlert.map { "\($0)" } ?? "none")",
                ])
        }
        close()
    }

    /// Ends the sending direction, as soon as the socket takes what TLS has to say for it.
    func finishSending() {
        guard !hasFinishedSending, transport.finishSending() else { return }
        hasFinishedSending = true
        if transport.isSecure { Sockets.shutdownWrite(descriptor) }
    }
}
