import HTTPCore
import PinfoldMetrics

/// How far an exchange that is under way has come.
package struct ExchangeProgress {
    /// What is counted of it until now.
    package var counted: ExchangeRecord
    /// What it has spent its time on until now.
    package var phases: PhaseTimes
    /// The name of its state.
    package var state: String
    /// The bytes of the response's content that the server has announced; `nil` if it has not, or
    /// if there is no such response.
    package var length: UInt64?
}

extension Exchange {
    /// The bytes of content, or in a tunnel, that have passed in both directions.
    package var passedBytes: (fromClient: UInt64, toClient: UInt64) {
        let relayed = (tunnel?.carrier as? Relay)?.relayedBytes ?? (fromClient: 0, toClient: 0)
        return (
            intake.receivedBytes + relayed.fromClient,
            (client?.sentBytes.content ?? 0) + relayed.toClient
        )
    }

    /// How far it has come; `nil` if it has ended, or is not a client's.
    package var progress: ExchangeProgress? {
        guard client != nil || tunnel?.carrier != nil, ingress?.isCounted ?? false,
            let label = ingress?.label
        else { return nil }
        if case .ended = state.step { return nil }
        let now = environment.readClock()
        let duration = UInt64(max(0, now - report.began))
        let passed = passedBytes
        var record = ExchangeRecord(
            route: RouteIndex(listener: label, host: report.hostLabel),
            method: MetricMethod(rawValue: request.method.rawValue) ?? .other,
            status: report.status, cache: report.cacheResult, durationMicroseconds: duration,
            requestBytes: passed.fromClient, responseBytes: passed.toClient)
        record.kind = kind
        return ExchangeProgress(
            counted: record, phases: phasesUntilNow, state: state.name, length: announcedLength)
    }

    private var announcedLength: UInt64? {
        guard case .responding = state.step, request.method != .head,
            case .length(let length) = response.framing
        else { return nil }
        return length
    }
}
