import Foundation
import TestSupport
import Testing

@testable import PinfoldMetrics

/// Snapshots to render.
enum Sample {
    static let reasons: [String] = ["upstream_timeout", "pin_mismatch", "bad_request"]

    static let listeners = LabelTable(["l"])

    static func worker() -> WorkerMetrics {
        WorkerMetrics(dimensions: MetricsDimensions(reasons: reasons.count))
    }

    /// The index of a name that is in force.
    static func index(_ label: String, in table: LabelTable) -> LabelIndex {
        table.inForce.first { $0.label == label }?.index ?? .other
    }

    static func exchange(
        _ host: LabelIndex, _ cache: CacheResult = .miss, _ status: UInt16 = 200,
        _ method: MetricMethod = .get
    ) -> ExchangeRecord {
        var record = ExchangeRecord(
            route: host == .other
                ? .other : RouteIndex(listener: index("l", in: listeners), host: host),
            method: method, status: status, cache: cache, durationMicroseconds: 1500,
            requestBytes: 10,
            responseBytes: 5000)
        record.failure = status >= 500 ? 1 : nil
        record.notStored = cache == .uncacheable ? 0 : nil
        record.firstByteMicroseconds = 700
        return record
    }

    static func snapshot(
        _ workers: [WorkerMetrics], _ hosts: LabelTable, _ pinsets: LabelTable = LabelTable(),
        service: ServiceMetrics = ServiceMetrics()
    ) -> MetricsSnapshot {
        MetricsSnapshot(
            workers: workers, listeners: listeners, hosts: hosts, pinsets: pinsets,
            reasons: reasons, notStored: ["no-store"], service: service)
    }

    /// Everything that can be shown is present.
    static func full(routes count: Int = 3) -> MetricsSnapshot {
        let hosts = LabelTable((0..<count).map { "route \"\($0)\"" })
        let pinsets = LabelTable(["payments"])
        let workers = (0..<2).map { _ in worker() }
        for worker in workers {
            for host in hosts.inForceAndOther {
                for cache in CacheResult.allCases {
                    worker.recordExchange(exchange(host.index, cache))
                    worker.recordExchange(exchange(host.index, cache, 502, .post))
                }
            }
            for counter in WorkerCounter.allCases { worker.add(counter, 3) }
            for gauge in WorkerGauge.allCases { worker.adjust(gauge, by: 2) }
            for histogram in WorkerHistogram.allCases {
                worker.record(histogram, microseconds: 123_456)
            }
            worker.recordPinEvaluation(
                pinset: index("payments", in: pinsets), result: .noPinMatched)
            worker.recordPinEvaluation(pinset: .other, result: .passed)
        }
        var service = ServiceMetrics()
        service.add(.counter, "service_lines", "Lines.", 17)
        service.add(.gauge, "service_size_bytes", unit: "bytes", "The size.", -1)
        service.add(.info, "service_build", "A \"build\".", [.init(LabelText("version", "1"), 1)])
        service.add(
            .gauge, "service_left_seconds", unit: "seconds", "Time left.",
            [
                .init(LabelText("file", "/etc/a \"list\""), signed: -5),
                .init(LabelText("file=\"b\""), UInt64.max),
            ])
        service.add(
            .gauge, "service_start_seconds", unit: "seconds", "When.",
            [.init(millionths: 1_700_000_000_123_000)])
        service.add(.counter, "service_unused", "Nothing.", [])
        return snapshot(workers, hosts, pinsets, service: service)
    }
}

@Suite("The exposition of everything")
struct ExpositionTests {
    private func parse(
        _ snapshot: MetricsSnapshot, _ format: ExpositionFormat = .text
    ) throws -> ParsedExposition {
        let text = String(decoding: snapshot.exposition(format), as: UTF8.self)
        return try ParsedExposition(text, isOpenMetrics: format == .openMetrics)
    }

    @Test(arguments: ExpositionFormat.allCases)
    func `both formats keep their grammar, empty and full`(format: ExpositionFormat) throws {
        _ = try parse(Sample.snapshot([], LabelTable()), format)
        _ = try parse(Sample.full(), format)
        _ = try parse(Sample.full(routes: 120), format)
    }

    @Test func `both formats have the same series`() throws {
        let snapshot = Sample.full()
        let text = try parse(snapshot, .text).families.flatMap(\.samples)
        let openMetrics = try parse(snapshot, .openMetrics).families.flatMap(\.samples)
        #expect(text == openMetrics)
        #expect(text.count > 200)
    }

    @Test func `workers are added up`() throws {
        let parsed = try parse(Sample.full())
        let labels = [
            "listener": "l", "host": "route \"1\"", "method": "GET", "code_class": "2xx",
            "cache": "hit",
        ]
        #expect(parsed.value("pinfold_http_requests_total", labels) == 2)
        #expect(parsed.value("pinfold_upstream_retries_total", ["reason": "connection_died"]) == 6)
        #expect(parsed.value("pinfold_tunnels_open") == 4)
        #expect(parsed.value("pinfold_dns_query_duration_seconds_count") == 2)
        #expect(parsed.value("pinfold_dns_query_duration_seconds_sum") == 0.246912)
        let of = ["listener": "l", "host": "route \"1\""]
        func value(_ name: String, _ more: [String: String]) -> Double? {
            parsed.value(name, of.merging(more) { $1 })
        }
        #expect(value("pinfold_http_request_failures_total", ["reason": "pin_mismatch"]) == 16)
        #expect(value("pinfold_http_request_failures_total", ["reason": "bad_request"]) == nil)
        #expect(value("pinfold_cache_not_stored_total", ["reason": "no-store"]) == 4)
        #expect(value("pinfold_upstream_first_byte_seconds_count", [:]) == 32)
        #expect(value("pinfold_http_response_content_bytes_total", ["cache": "hit"]) == 20_000)
        let evaluations = "pinfold_pin_evaluations_total"
        #expect(
            parsed.value(evaluations, ["pinset": "payments", "result": "no_pin_matched"]) == 2)
        #expect(parsed.value(evaluations, ["pinset": "payments", "result": "passed"]) == 0)
        #expect(parsed.value(evaluations, ["pinset": "other", "result": "passed"]) == 2)
        #expect(parsed.value(evaluations, ["pinset": "other", "result": "no_pin_matched"]) == nil)
    }

    @Test func `responses are shown by their exact status code`() throws {
        let workers = (0..<2).map { _ in Sample.worker() }
        let hosts = LabelTable(["api", "quiet"])
        let api = Sample.index("api", in: hosts)
        for worker in workers {
            for status: UInt16 in [200, 200, 404, 502, 555, 0] {
                worker.recordExchange(Sample.exchange(api, .none, status))
            }
        }
        workers[1].recordExchange(Sample.exchange(.other, .none, 999))
        let parsed = try parse(Sample.snapshot(workers, hosts))
        let samples = try #require(parsed["pinfold_http_responses_total"]?.samples)
        let shown = samples.map { "\($0.labels["host"] ?? "") \($0.labels["code"] ?? "")" }
        #expect(shown == ["api 200", "api 404", "api 502", "api 555", "other 999"])
        #expect(samples.map(\.value) == [4, 2, 2, 2, 1])
    }

    @Test(arguments: ["duration", "request", "response"])
    func `a route's histograms count its exchanges`(which: String) throws {
        let parsed = try parse(Sample.full())
        let route = ["listener": "l", "host": "route \"2\""]
        switch which {
        case "duration":
            let name = "pinfold_http_request_duration_seconds"
            #expect(parsed.value(name + "_count", route) == 32)
            #expect(parsed.value(name + "_sum", route) == 0.048)
            let below = route.merging(["le": "0.001"]) { $1 }
            let above = route.merging(["le": "0.0025"]) { $1 }
            #expect(parsed.value(name + "_bucket", below) == 0)
            #expect(parsed.value(name + "_bucket", above) == 32)
        case "request":
            #expect(parsed.value("pinfold_http_request_size_bytes_sum", route) == 320)
        default:
            #expect(parsed.value("pinfold_http_response_size_bytes_sum", route) == 160_000)
        }
    }

    @Test func `every host entry has series of its own, however many there are`() throws {
        let parsed = try parse(Sample.full(routes: 1300))
        let samples = try #require(parsed["pinfold_http_requests_total"]?.samples)
        #expect(Set(samples.compactMap { $0.labels["host"] }).count == 1301)
        let last = samples.filter { $0.labels["host"] == "route \"1299\"" }
        #expect(last.reduce(0) { $0 + $1.value } == 16 * 2)
        let connections = try #require(parsed["pinfold_host_connections"]?.samples)
        #expect(Set(connections.compactMap { $0.labels["host"] }).count == 1301)
    }

    @Test func `a host without traffic has no series of exchanges`() throws {
        let hosts = LabelTable(["busy", "quiet"])
        let worker = Sample.worker()
        worker.recordExchange(Sample.exchange(Sample.index("busy", in: hosts)))
        let parsed = try parse(Sample.snapshot([worker], hosts))
        let samples = try #require(parsed["pinfold_http_requests_total"]?.samples)
        #expect(samples.map { $0.labels["host"] } == ["busy"])
    }

    @Test func `a reload that adds a host keeps the others' counters`() throws {
        var hosts = LabelTable(["a"])
        let worker = Sample.worker()
        worker.recordExchange(Sample.exchange(Sample.index("a", in: hosts)))
        hosts.activate(["b", "a"])
        worker.recordExchange(Sample.exchange(Sample.index("a", in: hosts)))
        worker.recordExchange(Sample.exchange(Sample.index("b", in: hosts)))
        let parsed = try parse(Sample.snapshot([worker], hosts))
        let name = "pinfold_http_request_duration_seconds_count"
        #expect(parsed.value(name, ["listener": "l", "host": "a"]) == 2)
        #expect(parsed.value(name, ["listener": "l", "host": "b"]) == 1)
    }

    @Test func `a host that a reload removes has no series, and continues when it is back`() throws
    {
        var hosts = LabelTable(["a", "b"])
        let worker = Sample.worker()
        let removed = Sample.index("a", in: hosts)
        worker.recordExchange(Sample.exchange(removed))
        hosts.activate(["b"])
        // It was still in progress.
        worker.recordExchange(Sample.exchange(removed))
        let samples = try parse(Sample.snapshot([worker], hosts)).families.flatMap(\.samples)
        #expect(!samples.contains { $0.labels["host"] == "a" })
        #expect(!samples.contains { $0.labels["host"] == "other" })
        hosts.activate(["a", "b"])
        let back = try parse(Sample.snapshot([worker], hosts))
        let name = "pinfold_http_request_duration_seconds_count"
        #expect(back.value(name, ["listener": "l", "host": "a"]) == 2)
    }

    @Test func `what the gateway adds appears as it was added`() throws {
        let parsed = try parse(Sample.full())
        let expected: [(String, [String: String], Double)] = [
            ("service_lines_total", [:], 17), ("service_size_bytes", [:], 0),
            ("service_build_info", ["version": "1"], 1),
            ("service_left_seconds", ["file": "/etc/a \"list\""], -5),
            ("service_left_seconds", ["file": "b"], 18_446_744_073_709_551_616),
            ("service_start_seconds", [:], 1_700_000_000.123),
        ]
        for (name, labels, value) in expected {
            #expect(parsed.value(name, labels) == value, "\(name) \(labels)")
        }
        #expect(parsed["service_unused_total"]?.samples == [])
    }

    @Test func `every worker counter, gauge and histogram is in one family`() {
        let counters = CounterFamily.all.flatMap { $0.series.map(\.counter) }
        #expect(counters.count == WorkerCounter.allCases.count)
        #expect(Set(counters) == Set(WorkerCounter.allCases))
        #expect(GaugeFamily.all.map(\.gauge) == WorkerGauge.allCases)
        #expect(DurationFamily.all.map(\.histogram) == WorkerHistogram.allCases)
    }

    @Test func `a counter's family with a unit is named after it`() {
        for family in CounterFamily.all {
            let name = "\(family.name)"
            #expect(name.hasSuffix("_bytes") == (family.unit.map { "\($0)" } == "bytes"))
        }
    }
}

@Suite("promtool", .enabled(if: Promtool.path != nil, "promtool is not installed"))
struct PromtoolTests {
    @Test func `promtool accepts the metrics without remarks`() throws {
        for snapshot in [Sample.full(), Sample.snapshot([], LabelTable())] {
            let (status, output) = try Promtool.check(snapshot.exposition(.text))
            #expect(status == 0, "\(output)")
            #expect(output.isEmpty, "\(output)")
        }
    }

    @Test func `promtool does find a fault when there is one`() throws {
        let (status, output) = try Promtool.check(Array("requests 1\n".utf8))
        #expect(status != 0 || !output.isEmpty)
    }
}

enum Promtool {
    static let path = ["/usr/bin/promtool", "/usr/local/bin/promtool"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    static func check(_ exposition: [UInt8]) throws -> (status: Int32, output: String) {
        let file = FileManager.default.temporaryDirectory
            .appendingPathComponent("pinfold-\(UUID().uuidString).prom")
        try Data(exposition).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let command = try Command(
            path ?? "", ["check", "metrics"], input: file.path, keepsOutput: true)
        let outcome = command.wait()
        return (outcome.status, outcome.output + outcome.errors)
    }
}
