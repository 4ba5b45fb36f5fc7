import Testing

@testable import PinfoldMetrics

@Suite("Totals of traffic")
struct TrafficTotalsTests {
    private let listeners = LabelTable(["proxy"])
    private let worker = WorkerMetrics(dimensions: MetricsDimensions(reasons: 4))

    private func record(_ count: Int, _ host: String, _ hosts: LabelTable, failure: Int? = nil) {
        guard let index = hosts.all.first(where: { $0.label == host })?.index,
            let listener = listeners.all.first?.index
        else {
            Issue.record("no name \(host)")
            return
        }
        var exchange = ExchangeRecord(
            route: RouteIndex(listener: listener, host: index), method: .get, status: 200,
            cache: .hit, durationMicroseconds: 700, requestBytes: 0, responseBytes: 1)
        exchange.failure = failure
        var phases = PhaseTimes()
        phases.add(.connect, 700)
        for _ in 0..<count {
            worker.recordExchange(exchange)
            worker.recordPhases(phases, of: exchange)
        }
    }

    private func snapshot(_ hosts: LabelTable) -> MetricsSnapshot {
        MetricsSnapshot(
            workers: [worker], listeners: listeners, hosts: hosts, service: ServiceMetrics())
    }

    @Test func `they do not jump when a name is removed, or comes back`() {
        var hosts = LabelTable(["a", "b"])
        record(10, "a", hosts)
        record(5, "b", hosts, failure: 1)
        let before = snapshot(hosts).traffic
        #expect((before.exchanges, before.failures) == (15, 5))
        #expect((before.hits, before.lookups) == (15, 15))
        #expect(before.durations.count == 15)
        hosts.activate(["b"])
        #expect(snapshot(hosts).traffic.exchanges == 15)
        hosts.activate(["a", "b"])
        record(1, "a", hosts)
        #expect(snapshot(hosts).traffic.exchanges == 16)
    }

    @Test func `only entries in force have figures of their own`() {
        var hosts = LabelTable(["a", "b"])
        record(10, "a", hosts)
        record(5, "b", hosts, failure: 1)
        hosts.activate(["b"])
        let traffic = snapshot(hosts).hostTraffic
        #expect(traffic.map(\.label) == ["b"])
        #expect(traffic.first?.exchanges == 5)
        #expect(traffic.first?.failures == 5)
        #expect(traffic.first?.reasons == [1: 5])
        #expect(traffic.first?.phases[.connect]?.count == 5)
        #expect(traffic.first?.phases[.dns] == nil)
    }

    @Test func `a quantile lies in the bucket that has it`() throws {
        let hosts = LabelTable(["a"])
        record(100, "a", hosts)
        let durations = snapshot(hosts).traffic.durations
        let p99 = try #require(durations.quantile(990))
        #expect((500...1000).contains(p99))
        #expect(durations.since(durations).quantile(500) == nil, "nothing since")
    }
}
