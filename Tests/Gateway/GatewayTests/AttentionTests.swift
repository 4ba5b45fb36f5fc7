import HTTPCore
import Testing
import Trust

@testable import Gateway
@testable import PinfoldEngine
@testable import PinfoldMetrics

@Suite("Overview: what needs attention")
struct AttentionTests {
    @Test func `what expires soon needs attention, the sooner the more`() {
        var finder = AttentionFinder(now: 1_000_000)
        let day: Int64 = 86_400
        finder.look(atEnd: 1_000_000 + 20 * day, of: "a", .certificate)
        finder.look(atEnd: 1_000_000 + 10 * day, of: "b", .certificate)
        finder.look(atEnd: 1_000_000 + 2 * day, of: "c", .pinset, pinset: "p")
        finder.look(atEnd: 999_000, of: "d", .certificate)
        #expect(
            finder.sorted.map(\.text) == [
                "c expires in 2 days", "d has expired", "b expires in 10 days",
            ])
        #expect(finder.sorted.map(\.level) == [.critical, .critical, .warning])
    }

    @Test func `a list of logs that is old is a warning`() {
        var finder = AttentionFinder(now: 0)
        finder.look(atOldLogs: "logs.json")
        #expect(finder.sorted.map(\.level) == [.warning])
        #expect(
            finder.sorted.map(\.text) == ["the list of logs logs.json is more than 70 days old"])
    }

    @Test func `descriptors that ran out are critical while they are gone`() {
        var finder = AttentionFinder(now: 0)
        finder.look(atPaused: 0, pauses: 0)
        #expect(finder.sorted.isEmpty)
        finder.look(atPaused: 0, pauses: 3)
        finder.look(atPaused: 1, pauses: 0)
        #expect(finder.sorted.map(\.level) == [.critical, .warning])
        #expect(finder.sorted.allSatisfy { $0.kind == .limit })
    }

    @Test func `a host with more failures than usual is in trouble`() {
        var (now, before) = (HostTraffic(label: "a"), HostTraffic(label: "a"))
        (before.exchanges, before.failures) = (1000, 10)
        (now.exchanges, now.failures) = (1100, 30)
        #expect(HostReport(now: now, before: before).troubles.map(\.word) == ["failures"])
        now.failures = 12
        #expect(HostReport(now: now, before: before).troubles.isEmpty)
    }

    @Test func `a host whose exchanges all fail is in trouble, with the causes`() {
        var now = HostTraffic(label: "a")
        let (refused, late) = (Reason.server(.connectionRefused), Reason.server(.connectTimeout))
        (now.exchanges, now.failures) = (5, 5)
        now.reasons = [late.index: 1, refused.index: 4]
        let report = HostReport(now: now)
        #expect(report.causes.map(\.token) == [refused.token, late.token])
        #expect(
            report.troubles.map(\.text) == [
                "5 of 5 exchanges failed: \(refused.token) 4, \(late.token) 1"
            ])
        now.exchanges = 6
        #expect(HostReport(now: now).troubles.isEmpty, "of so few, one that does not fail is many")
        #expect(HostReport(now: now, before: now).causes.isEmpty, "none lately")
    }

    @Test func `a host of which everything failed before, too, stays in trouble`() {
        var (now, before) = (HostTraffic(label: "a"), HostTraffic(label: "a"))
        (before.exchanges, before.failures) = (50, 50)
        (now.exchanges, now.failures) = (100, 100)
        #expect(HostReport(now: now, before: before).troubles.map(\.word) == ["failures"])
        // Half of them are what is usual there.
        (before.failures, now.failures) = (25, 50)
        #expect(HostReport(now: now, before: before).troubles.isEmpty)
    }

    @Test func `one server without a pinned key is critical`() {
        var now = HostTraffic(label: "a")
        (now.exchanges, now.failures) = (1000, 1)
        now.reasons = [Reason.trust(.noPinMatches).index: 1]
        let report = HostReport(now: now, pinsets: ["keys"])
        #expect(report.troubles.map(\.word) == ["pin_mismatch"])
        var finder = AttentionFinder(now: 0)
        finder.look(at: report)
        #expect(finder.sorted.map(\.level) == [.critical])
        #expect(
            finder.sorted.map(\.text) == [
                "a server has none of the keys of keys, and 1 exchange was refused"
            ])
        // All of them have to match.
        let two = HostReport(now: now, pinsets: ["keys", "more"]).troubles
        #expect(
            two.map(\.text) == [
                "a server has none of the keys of one of keys, more, and 1 exchange was refused"
            ])
    }

    @Test func `servers that are not reachable are named, as far as there is room`() {
        var report = HostReport(now: HostTraffic(label: "a"))
        (report.notReachable, report.unreachable) = (1, ["x.test"])
        #expect(report.troubles.map(\.text) == ["x.test is not reachable"])
        (report.notReachable, report.unreachable) = (5, ["a", "b", "c", "d", "e"])
        #expect(report.troubles.map(\.text) == ["a, b, c and 2 more are not reachable"])
        report.unreachable = []
        #expect(report.troubles.map(\.text) == ["5 servers are not reachable"])
    }

    @Test func `clients that reject certificates are trouble`() {
        var now = HostTraffic(label: "a")
        now.rejections = 2
        #expect(HostReport(now: now).troubles.map(\.word) == ["clients_reject"])
        #expect(HostReport(now: now, before: now).troubles.isEmpty)
    }

    @Test func `a phase is slow by itself where nothing is known of what is usual`() {
        func traffic(_ microseconds: UInt64, _ count: Int = 3) -> HostTraffic {
            let worker = WorkerMetrics(dimensions: MetricsDimensions(reasons: 1))
            let (listeners, hosts) = (LabelTable(["proxy"]), LabelTable(["a"]))
            let exchange = ExchangeRecord(
                route: RouteIndex(
                    listener: listeners.all[0].index, host: hosts.all[0].index),
                method: .get, status: 200, cache: .none, durationMicroseconds: microseconds,
                requestBytes: 0, responseBytes: 1)
            var phases = PhaseTimes()
            phases.add(.connect, microseconds)
            for _ in 0..<count {
                worker.recordExchange(exchange)
                worker.recordPhases(phases, of: exchange)
            }
            let snapshot = MetricsSnapshot(
                workers: [worker], listeners: listeners, hosts: hosts, service: ServiceMetrics())
            return snapshot.hostTraffic[0]
        }
        let slow = HostReport(now: traffic(1_500_000)).troubles
        #expect(slow.map(\.word) == ["slow_connect"])
        #expect(!slow[0].text.contains("usually"))
        #expect(HostReport(now: traffic(400_000)).troubles.isEmpty)
        #expect(HostReport(now: traffic(1_500_000, 2)).troubles.isEmpty, "of so few, none")
    }
}
