import CachePolicy
import EventLoop
import HTTPCore
import PinfoldMetrics

// The end of every exchange: metrics and the access log.
extension Exchange {
    /// Releases everything that the exchange holds, reports it, and leaves its stream. It must not
    /// be used afterwards: the object may already be in use for another exchange.
    func end(cut: Bool, clientIsGone: Bool = false) {
        if balanced != nil { leaveServer() }
        abandonStore()
        if storing.filling != nil { endFilling() }
        if storing.partial != nil { abandonPart() }
        if storing.flight != nil { endStoreFlight() }
        if forwarding.wasSent, !request.isSafe { invalidateUnanswered() }
        if collapsing.takesPart { leaveFlight() }
        if collapsing.lease != nil { _ = collapsing.takeLease() }
        leaveAccount()
        releaseGathered()
        uploadEnded()
        let stream = client.take()
        let sent = stream?.sentBytes ?? (total: 0, content: 0)
        reportEnd(sent: sent)
        if limiting != nil { leaveRates(sent: passed(sent.content)) }
        endRevalidation()
        if storing.formerClient != nil { storing.takeFormerClient()?.exchangeReleased() }
        if let stream, !clientIsGone {
            stream.exchangeEnded(cut: cut)
        } else {
            environment.recycle(self)
        }
    }

    /// The client is gone, and the response goes on for others: the exchange is reported now.
    func detachClient() {
        leaveAccount()
        uploadEnded()
        let stream = client.take()
        let sent = stream?.sentBytes ?? (total: 0, content: 0)
        reportEnd(sent: sent)
        if limiting != nil { leaveRates(sent: passed(sent.content)) }
        serving.endReading()
        if let stream {
            stream.exchangeContinues()
            storing.goOn(without: stream)
        }
        // If the client held it up.
        upstream?.resume()
    }

    /// The bytes that have passed in each direction, which rates count.
    private func passed(_ content: UInt64) -> (down: UInt64, up: UInt64) {
        (
            content + report.relayedBytes.toClient,
            intake.receivedBytes + report.relayedBytes.fromClient
        )
    }

    private func reportEnd(sent: (total: UInt64, content: UInt64)) {
        let now = environment.readClock()
        let duration = UInt64(max(0, now - report.began))
        debugEnd(duration, at: now)
        guard !report.isMade else { return }
        report.made()
        guard ingress?.isCounted ?? false, let label = ingress?.label else { return }
        let record = record(at: label, duration, contentBytes: sent.content)
        metrics.recordExchange(record)
        if let tunnel, tunnel.isRequested, tunnel.result == nil, record.failure != nil {
            count(.refused)
        }
        if remarks.transformed != nil { countTransformations(route: record.route) }
        if let groups = environment.policy.groups, let identity {
            environment.recentMembers.count(record, of: identity, by: groups)
        }
        metrics.add(.clientBytesSent, sent.total + report.relayedBytes.toClient)
        if forwarding.askedAt != 0 || waits.phases.haveWaits || record.failure != nil
            || environment.reportsExchanges
        {
            report(record, at: now)
        }
        environment.exchangeEnded()
    }

    /// Counts what it has spent its time on, and passes it to whoever shows exchanges. For most
    /// hits there is neither.
    @inline(never)
    private func report(_ record: ExchangeRecord, at end: Int64) {
        let phases = phases(waits, at: end, of: record.durationMicroseconds)
        if phases.haveWaits { metrics.recordPhases(phases, of: record) }
        if environment.reportsExchanges || record.failure != nil {
            environment.host?.exchangeEnded(self, record, phases)
        }
    }

    @inline(__always)
    private func record(
        at listener: LabelIndex, _ duration: UInt64, contentBytes: UInt64
    ) -> ExchangeRecord {
        var record = ExchangeRecord(
            route: RouteIndex(listener: listener, host: report.hostLabel),
            method: MetricMethod(rawValue: request.method.rawValue) ?? .other,
            status: report.status, cache: report.cacheResult, durationMicroseconds: duration,
            requestBytes: intake.receivedBytes + report.relayedBytes.fromClient,
            responseBytes: contentBytes + report.relayedBytes.toClient)
        record.kind = kind
        record.firstByteMicroseconds = forwarding.firstByteMicroseconds
        record.failure = remarks.fault?.reason.index
        record.notStored = storing.refusal.map { Int($0.rawValue) }
        return record
    }

    /// Why this request, or another for the same resource, was sent to a server; `nil` if it was
    /// not.
    package var reasonForwarded: ForwardReason? {
        forwarding.wasSent || report.cacheResult == .collapsed ? caching.forwardReason : nil
    }

    /// Exchanges that last as long as both ends want have their own duration metrics.
    var kind: ExchangeKind {
        if report.status == 101 { return .upgrade }
        if forwarding.isEventStream { return .eventStream }
        guard let tunnel, report.status == 200, !tunnel.isIntercepted else { return .request }
        return .tunnel
    }
}
