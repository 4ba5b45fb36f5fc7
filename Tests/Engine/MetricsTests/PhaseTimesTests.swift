import Testing

@testable import PinfoldMetrics

@Suite("Phases of an exchange")
struct PhaseTimesTests {
    /// Behind `other` and `none`.
    private let api = LabelIndex(slot: 2, use: 0)

    private func exchange(
        _ times: [(Phase, UInt64)], _ kind: ExchangeKind = .request
    ) -> (ExchangeRecord, PhaseTimes) {
        var record = ExchangeRecord(
            route: RouteIndex(listener: api, host: api), method: .get, status: 200, cache: .none,
            durationMicroseconds: 10_000, requestBytes: 0, responseBytes: 0)
        record.kind = kind
        var phases = PhaseTimes()
        for (phase, microseconds) in times { phases.add(phase, microseconds) }
        return (record, phases)
    }

    private func parsed(_ exchanges: [(ExchangeRecord, PhaseTimes)]) throws -> ParsedExposition {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: MetricsDimensions(reasons: 1)) }
        for (exchange, phases) in exchanges {
            for worker in workers {
                worker.recordExchange(exchange)
                if phases.haveWaits { worker.recordPhases(phases, of: exchange) }
            }
        }
        let labels = LabelTable(["api"], permanent: ["none"])
        let snapshot = MetricsSnapshot(
            workers: workers, listeners: labels, hosts: labels, service: ServiceMetrics())
        return try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
    }

    @Test func `what did not happen has no time, what took no time has`() {
        var times = PhaseTimes()
        #expect(Phase.allCases.allSatisfy { times[$0] == nil })
        #expect(!times.haveWaits)
        times.add(.body, 3)
        #expect(!times.haveWaits)
        times.add(.dns, 0)
        #expect(times[.dns] == 0 && times[.connect] == nil && times.haveWaits)
    }

    @Test func `attempts are added up`() {
        var (times, attempt) = (PhaseTimes(), PhaseTimes())
        for (index, phase) in Phase.allCases.enumerated() { times.add(phase, UInt64(index)) }
        attempt.add(.connect, 5)
        attempt.add(.connect, 7)
        times.add(attempt)
        #expect(times[.connect] == 14)
        #expect(times[.tls] == 3)
        #expect(times.sum == 0 + 1 + 2 + 3 + 4 + 5 + 12)
    }

    @Test func `each phase that happened is counted for the host entry`() throws {
        let parsed = try parsed([
            exchange([(.dns, 500), (.connect, 501), (.firstByte, 70_000_000), (.body, 1)]),
            exchange([(.firstByte, 0), (.body, 3)]),
        ])
        let name = "pinfold_host_phase_duration_seconds"
        func value(_ phase: String, _ part: String, _ bound: String? = nil) -> Double? {
            var labels = ["host": "api", "phase": phase]
            if let bound { labels["le"] = bound }
            return parsed.value(name + part, labels)
        }
        #expect(value("dns", "_bucket", "0.0005") == 2)
        #expect(value("connect", "_bucket", "0.0005") == 0)
        #expect(value("connect", "_bucket", "0.0025") == 2)
        #expect(value("first_byte", "_count") == 4)
        #expect(value("first_byte", "_bucket", "60.0") == 2)
        #expect(value("first_byte", "_sum") == 140)
        #expect(value("body", "_sum") == 0.000008)
        #expect(value("queue", "_count") == nil)
    }

    @Test func `what waited for nothing is not counted, nor how long streams last`() throws {
        let parsed = try parsed([
            exchange([(.body, 5)]), exchange([]),
            exchange([(.connect, 5), (.body, 3_600_000_000)], .tunnel),
        ])
        let name = "pinfold_host_phase_duration_seconds_count"
        #expect(parsed.value(name, ["host": "api", "phase": "body"]) == nil)
        #expect(parsed.value(name, ["host": "api", "phase": "connect"]) == 2)
    }
}
