import CachePolicy
import EventLoop
import HTTPCore
import PinfoldMetrics

// The end of every exchange: metrics and the access log.
extension Exchange {
    /// Releases everything that the exchange holds, reports it, and leaves its stream. It must not
    /// be used afterwards: the object may already be in use for another exchange.
    func end(cut: Bool, clientIsGone: Bool = false) {
        abandonStore()
        if storeFlight != nil { endStoreFlight() }
        if sentAt != 0, !request.isSafe { invalidateUnanswered() }
        if case .none = collapsing {} else { leaveFlight() }
        leaveAccount()
        uploadEnded()
        let stream = client.take()
        report(sent: stream?.sentBytes ?? (total: 0, content: 0))
        endRevalidation()
        if let stream, !clientIsGone {
            stream.exchangeEnded(cut: cut)
        } else {
            environment.recycle(self)
        }
    }

    private func report(sent: (total: UInt64, content: UInt64)) {
        let duration = UInt64(max(0, environment.readClock() - started))
        debugEnd(duration)
        guard ingress?.isCounted ?? false, let label = ingress?.label else { return }
        let record = record(at: label, duration, contentBytes: sent.content)
        metrics.recordExchange(record)
        if transformed != nil { countTransformations(route: record.route) }
        metrics.add(.clientBytesSent, sent.total + relayedBytes.toClient)
        environment.exchangeEnded(self, record)
    }

    @inline(__always)
    private func record(
        at listener: LabelIndex, _ duration: UInt64, contentBytes: UInt64
    ) -> ExchangeRecord {
        var record = ExchangeRecord(
            route: RouteIndex(listener: listener, host: hostLabel),
            method: MetricMethod(rawValue: request.method.rawValue) ?? .other,
            status: status, cache: cacheResult, durationMicroseconds: duration,
            requestBytes: receivedBodyBytes + relayedBytes.fromClient,
            responseBytes: contentBytes + relayedBytes.toClient)
        record.kind = kind
        record.firstByteMicroseconds = firstByteMicroseconds
        record.failure = fault?.reason.index
        record.notStored = notStoredReason.map { Int($0.rawValue) }
        return record
    }

    /// Why this request, or another for the same resource, was sent to a server; `nil` if it was
    /// not.
    package var reasonForwarded: ForwardReason? {
        sentAt != 0 || cacheResult == .collapsed ? forwardReason : nil
    }

    /// Exchanges that last as long as both ends want have their own duration metrics.
    private var kind: ExchangeKind {
        if status == 101 { return .upgrade }
        if isEventStream { return .eventStream }
        return request.method == .connect && status == 200 && !isIntercepted ? .tunnel : .request
    }
}
