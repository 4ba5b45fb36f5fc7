import HTTPCore
import PinfoldEngine
import PinfoldMetrics

// What the worker does for recordings, besides what it does while somebody looks at exchanges.
extension Worker {
    /// The most bytes of a response's head that are kept for recordings, and for the ring alone.
    private static var recordedHeadBytes: Int { HeldFlow.Limits.ofRecording.responseHead }
    private static var heldHeadBytes: Int { HeldFlow.Limits.ofRing.responseHead }

    /// A recording has begun or ended.
    func followRecordings(_ round: RecordingRound) {
        let isActive = shared.recordings.isActive
        environment.keptHeadBytes = isActive ? Self.recordedHeadBytes : Self.heldHeadBytes
        environment.keepsContents = shared.recordings.wantsContents
        if isActive { watchFlows() }
        round.answer()
    }

    package func contents(of exchange: Exchange) -> KeptContents? {
        guard let label = exchange.intake.ingress?.label else { return nil }
        let counted = ExchangeRecord(
            route: RouteIndex(listener: label, host: exchange.report.hostLabel),
            method: MetricMethod(rawValue: exchange.request.method.rawValue) ?? .other, status: 0,
            cache: .none, durationMicroseconds: 0, requestBytes: 0, responseBytes: 0)
        return flow(of: exchange, counted, PhaseTimes()).flatMap {
            shared.recordings.contents(of: $0)
        }
    }
}
