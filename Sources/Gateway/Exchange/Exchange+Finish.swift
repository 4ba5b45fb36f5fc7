import Clocks
import EventLoop
import HTTPCore
import Metrics

// The end of every exchange: metrics and the access log.
extension Exchange {
    /// Ends the exchange when its response is complete and written.
    func finishIfResponseIsOver() {
        guard responseIsComplete, let client, client.isFlushed else { return }
        finish()
    }

    /// Ends the exchange. `cut`: the response is not complete. Nothing may be done with the
    /// exchange afterwards: it may already be another one.
    func finish(cut: Bool = false) {
        guard phase != .ended else { return }
        releaseUpstream()
        report()
        become(.ended)
        endRevalidation()
        let client = clientReference
        clientReference = nil
        if let client {
            client.exchangeEnded(cut: cut)
        } else {
            worker.recycle(self)
        }
    }

    private func releaseUpstream() {
        abandonStore()
        leaveFlight()
        leaveAccount()
        uploadEnded()
        if let upstream {
            self.upstream = nil
            upstream.cancel()
        }
        if phase == .connecting, let origin { worker.upstreams.abandon(origin, self) }
        if let connectOperation {
            self.connectOperation = nil
            connectOperation.cancel()
        }
    }

    /// The client's connection is gone; it no longer refers to the exchange.
    func clientGone() {
        guard phase != .ended else { return }
        releaseUpstream()
        report()
        become(.ended)
        clientReference = nil
        worker.recycle(self)
    }

    /// Nothing moved between the client and the gateway for too long.
    func clientTimedOut() {
        if responseHeadSent || phase != .forwarding && phase != .gathering {
            fault = .clientTimeout
            return finish(cut: true)
        }
        upstream?.cancel()
        upstream = nil
        reply(with: .requestTimeout, closing: true)
    }

    private func report() {
        let now = Clock.monotonicMicroseconds()
        let duration = UInt64(max(0, now - started))
        debugEnd(duration)
        let sent = (clientReference?.responseBytes ?? 0) + relayedBytes.toClient
        if let listener, listener.isCounted {
            worker.metrics.recordExchange(record(on: listener, duration))
            worker.metrics.add(.clientBytesSent, sent)
            if let log = worker.shared.accessLog {
                worker.write(self, to: log, durationMicroseconds: duration)
            }
            worker.exchangeEnded()
        }
    }

    @inline(__always)
    private func record(on listener: Listener, _ duration: UInt64) -> ExchangeRecord {
        var record = ExchangeRecord(
            route: worker.routes.index(
                listener: listener.label, host: hostLabel, labels: worker.shared.labels),
            method: MetricMethod(rawValue: request.method.rawValue) ?? .other,
            status: status, cache: cacheResult, durationMicroseconds: duration,
            requestBytes: receivedBodyBytes + relayedBytes.fromClient,
            responseBytes: (clientReference?.contentBytes ?? 0) + relayedBytes.toClient)
        record.kind = kind
        record.firstByteMicroseconds = firstByteMicroseconds
        record.failure = fault?.reason.index
        record.notStored = notStoredReason.map { Int($0.rawValue) }
        return record
    }

    /// Exchanges that last as long as their two ends wish are timed apart from requests.
    private var kind: ExchangeKind {
        if status == 101 { return .upgrade }
        if isEventStream { return .eventStream }
        return request.method == .connect && status == 200 ? .tunnel : .request
    }
}
