import EventLoop
import HTTP2
import HTTPCore
import PinfoldEngine

// The way from HTTP/1 to HTTP/2: by ALPN, or by a client's preface in clear text (RFC 9113 §3).
extension ClientConnection {
    /// Whether the handshake decides that the client speaks HTTP/2.
    ///
    /// With a proxy it does not: there are clients, such as Go's, that offer their proxy what they
    /// will offer servers, and then speak HTTP/1.1 with it whatever was agreed on. Their first
    /// bytes decide.
    func agreesOnHTTP2(_ session: ClientSession) -> Bool {
        switch (session.carrier, ingress.role) {
        case (.http1, _), (.http2, .forward), (.http2, .proxied), (.http2, .proof),
            (.http2, .transparent):
            false
        case (.http2, .reverse), (.http2, .balanced), (.http2, .bound), (.http2, .admin): true
        }
    }

    /// Whether what the client has sent in place of a request is the beginning of the preface of
    /// HTTP/2, and its listener takes that.
    func speaksHTTP2() -> Bool {
        guard ingress.takesHTTP2, !http.hasCarriedExchange, let input else { return false }
        let preface = HTTP2Connection.preface
        let expected = UnsafeRawBufferPointer(
            start: preface.utf8Start, count: preface.utf8CodeUnitCount)
        return input.count >= Self.decidingBytes
            && input.readable.prefix(expected.count).elementsEqual(
                expected.prefix(input.count))
    }

    /// `PRI * HTTP/2.0`: no request in HTTP/1 begins like that.
    private static let decidingBytes = 14

    /// Continues the connection in HTTP/2.
    func becomeHTTP2() {
        let event = HTTP1Connection.Event.versionChanged
        guard http.handle(event) == .nothing else {
            environment.reportIllegal(event, on: http)
            return cutOff()
        }
        environment.release(self)
        if let exchange = exchange.take() { environment.recycle(exchange) }
        loop.remove(self, keepingOpen: descriptor)
        let successor = HTTP2ClientConnection(
            worker: worker, transport: transport, ingress: secureIngress ?? ingress, peer: peer,
            account: account, tunnel: tunnel, isUntried: isUntried, input: input.take())
        do {
            try loop.add(successor, descriptor: descriptor)
        } catch {
            worker.idleClients.removed(self)
            Descriptors.close(descriptor)
            return worker.clientLeft(account)
        }
        worker.idleClients.continues(self, as: successor)
        successor.start()
        successor.drive()
    }
}

extension Worker {
    /// What HTTP/2 connections of clients are limited to.
    var http2Limits: HTTP2Limits {
        let limits = policy.configuration.limits
        return HTTP2Limits(
            streams: limits.streams, resets: limits.resets, headerListBytes: limits.headBytes)
    }
}
