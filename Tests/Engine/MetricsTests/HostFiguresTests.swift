import Testing

@testable import PinfoldMetrics

@Suite("Figures of host entries")
struct HostFiguresTests {
    /// Behind `other` and `none`.
    private let api = LabelIndex(slot: 2, use: 0)
    private let dimensions = MetricsDimensions(reasons: 1)

    private func parsed(_ workers: [WorkerMetrics]) throws -> ParsedExposition {
        var service = ServiceMetrics()
        service.wallSeconds = 1000
        let snapshot = MetricsSnapshot(
            workers: workers, hosts: LabelTable(["api"], permanent: ["none"]), service: service)
        return try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
    }

    @Test func `connections are in use or idle, and all together are the total`() throws {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        for worker in workers {
            for _ in 0..<3 { worker.adjust(.open, host: api, by: 1) }
            worker.adjust(.idle, host: api, by: 1)
            worker.adjust(.waiting, host: api, by: 7)
            worker.adjust(.waiting, host: api, by: -2)
        }
        workers[0].adjust(.open, host: .other, by: 1)
        let parsed = try parsed(workers)
        let name = "pinfold_host_connections"
        #expect(parsed.value(name, ["host": "api", "state": "in_use"]) == 4)
        #expect(parsed.value(name, ["host": "api", "state": "idle"]) == 2)
        #expect(parsed.value(name, ["host": "other", "state": "in_use"]) == 1)
        #expect(parsed.value(name, ["host": "none", "state": "in_use"]) == 0)
        #expect(parsed.value("pinfold_host_waiting", ["host": "api"]) == 10)
        #expect(parsed.value("pinfold_upstream_connections_open") == 7)
    }

    @Test func `tunnels are counted by entry and result, all of them from the start`() throws {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        for (number, result) in TunnelResult.allCases.enumerated() {
            for worker in workers {
                for _ in 0..<number { worker.countTunnel(result, host: api) }
            }
        }
        let parsed = try parsed(workers)
        for (number, result) in TunnelResult.allCases.enumerated() {
            let labels = ["host": "api", "result": "\(result.label)"]
            #expect(parsed.value("pinfold_host_tunnels_total", labels) == Double(2 * number))
            let none = ["host": "none", "result": "\(result.label)"]
            #expect(parsed.value("pinfold_host_tunnels_total", none) == 0)
        }
        #expect(parsed.value("pinfold_interception_rejections_total", ["host": "api"]) == 0)
    }

    @Test func `of an entry's certificates the one that ends first is shown`() throws {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        workers[0].noteCertificate(host: api, notAfter: 4600, at: 10)
        workers[0].noteCertificate(host: api, notAfter: 1500, at: 20)
        workers[0].noteCertificate(host: api, notAfter: 9000, at: 30)
        workers[1].noteCertificate(host: api, notAfter: 4600, at: 40)
        workers[1].noteCertificate(host: .other, notAfter: 400, at: 40)
        let parsed = try parsed(workers)
        let name = "pinfold_certificate_not_after_timestamp_seconds"
        #expect(parsed.value(name, ["host": "api", "use": "upstream"]) == 1500)
        #expect(parsed.value(name, ["host": "other", "use": "upstream"]) == 400)
        #expect(parsed.value(name, ["host": "none", "use": "upstream"]) == nil)
    }

    @Test func `a certificate that was renewed is forgotten two hours later at the latest`() throws
    {
        let name = "pinfold_certificate_not_after_timestamp_seconds"
        let labels = ["host": "api", "use": "upstream"]
        // Seconds after the renewal at which the new one is seen, and what is shown then.
        for (later, end) in [(3599, 1500), (3600, 1500), (7199, 1500), (7200, 9000)] {
            let worker = WorkerMetrics(dimensions: dimensions)
            worker.noteCertificate(host: api, notAfter: 1500, at: 100)
            worker.noteCertificate(host: api, notAfter: 9000, at: Int64(100 + later))
            #expect(try parsed([worker]).value(name, labels) == Double(end), "\(later)")
        }
        // One period after the other, and by another worker than before.
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        workers[0].noteCertificate(host: api, notAfter: 1500, at: 100)
        workers[1].noteCertificate(host: api, notAfter: 9000, at: 200)
        #expect(try parsed(workers).value(name, labels) == 1500)
        workers[1].noteCertificate(host: api, notAfter: 9000, at: 3800)
        #expect(try parsed(workers).value(name, labels) == 1500)
        workers[1].noteCertificate(host: api, notAfter: 9000, at: 7400)
        #expect(try parsed(workers).value(name, labels) == 9000)
    }

    @Test func `the gateway's own certificates are shown beside those of servers`() throws {
        let worker = WorkerMetrics(dimensions: dimensions)
        worker.noteCertificate(host: api, notAfter: 1500, at: 20)
        var service = ServiceMetrics()
        service.certificates = [
            CertificateMetrics(use: "listener", file: "/a \"b\"", notAfter: 2000),
            CertificateMetrics(use: "client", file: "/c", notAfter: -3),
        ]
        let snapshot = MetricsSnapshot(
            workers: [worker], hosts: LabelTable(["api"], permanent: ["none"]), service: service)
        let parsed = try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
        let name = "pinfold_certificate_not_after_timestamp_seconds"
        #expect(parsed[name]?.samples.count == 3)
        #expect(parsed.value(name, ["file": "/a \"b\"", "use": "listener"]) == 2000)
        #expect(parsed.value(name, ["file": "/c", "use": "client"]) == -3)
    }

    @Test func `lists that must be replaced are shown with their times`() throws {
        var service = ServiceMetrics()
        service.revocationLists = [ListMetrics(file: "/a.crl", time: 2000)]
        service.logLists = [ListMetrics(file: "/logs.json", time: 1000)]
        let snapshot = MetricsSnapshot(
            workers: [WorkerMetrics(dimensions: dimensions)],
            hosts: LabelTable(["api"], permanent: ["none"]), service: service)
        let parsed = try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
        let names = (
            "pinfold_crl_next_update_timestamp_seconds", "pinfold_log_list_timestamp_seconds"
        )
        #expect(parsed.value(names.0, ["file": "/a.crl"]) == 2000)
        #expect(parsed.value(names.1, ["file": "/logs.json"]) == 1000)
    }
}
