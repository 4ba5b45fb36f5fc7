import Testing

@testable import PinfoldMetrics

@Suite("Figures of pinsets")
struct PinsetFiguresTests {
    private let dimensions = MetricsDimensions(routes: 2, pinsets: 3, hosts: 3, reasons: 1)

    private func parsed(
        _ workers: [WorkerMetrics], _ pinsets: [PinsetFigures]
    ) throws -> ParsedExposition {
        var service = ServiceFigures()
        service.wallSeconds = 1000
        service.pinsets = pinsets
        let snapshot = MetricsSnapshot(
            workers: workers, routes: LabelTable(),
            pinsets: LabelTable(["a", "b"], capacity: 2), reasons: [],
            hosts: LabelTable(["none", "api"], capacity: 2), service: service, process: nil,
            build: BuildFigures(version: "1"))
        return try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
    }

    @Test func `matches are counted by pin, and configured pins are listed from the start`() throws
    {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        for worker in workers {
            worker.recordPinMatch(pinset: 0, pin: 1)
            worker.recordPinMatch(pinset: 1, pin: 15)
            worker.recordPinMatch(pinset: 1, pin: 999)
        }
        workers[0].recordPinMatch(pinset: 77, pin: 0)
        let parsed = try parsed(
            workers, [PinsetFigures(label: "a", pins: 3), PinsetFigures(label: "b", pins: 0)])
        let name = "pinfold_pin_matches_total"
        let expected: [(String, String, Double?)] = [
            ("a", "0", 0), ("a", "1", 2), ("a", "2", 0), ("a", "3", nil), ("b", "0", nil),
            ("b", "other", 4), ("other", "0", 1), ("other", "1", nil),
        ]
        for (pinset, pin, count) in expected {
            #expect(
                parsed.value(name, ["pinset": pinset, "pin": pin]) == count, "\(pinset) \(pin)")
        }
    }

    @Test(
        arguments: [
            (PinsetFigures(label: "a", pins: 1), 1, nil),
            (PinsetFigures(label: "a", pins: 1, isEnforced: false), 0, nil),
            (PinsetFigures(label: "a", pins: 1, expires: 1600), 1, 600),
            (PinsetFigures(label: "a", pins: 1, expires: 400), 1, -600),
            (PinsetFigures(label: "a", pins: 1, expires: 1000, isReportedAfter: true), 0, 0),
            (PinsetFigures(label: "a", pins: 1, expires: 1001, isReportedAfter: true), 1, 1),
        ] as [(PinsetFigures, Double, Double?)])
    func `whether a pinset is in force, and for how long`(
        figures: PinsetFigures, enforced: Double, left: Double?
    ) throws {
        let parsed = try parsed([], [figures])
        #expect(parsed.value("pinfold_pinset_enforced", ["pinset": "a"]) == enforced)
        #expect(parsed.value("pinfold_pinset_expiry_seconds", ["pinset": "a"]) == left)
    }

    @Test func `a pinset beyond the labels has no figures of its own`() throws {
        let parsed = try parsed([], [PinsetFigures(label: "c", pins: 1, expires: 5)])
        #expect(parsed.value("pinfold_pinset_enforced", ["pinset": "c"]) == nil)
        #expect(parsed.value("pinfold_pinset_enforced", ["pinset": "other"]) == nil)
        #expect(parsed.value("pinfold_pin_matches_total", ["pinset": "c", "pin": "0"]) == nil)
    }

    @Test func `the end of a verified chain is told beside that of the certificate`() throws {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        workers[0].noteCertificate(host: 1, notAfter: 5000)
        workers[0].noteChain(host: 1, notAfter: 1300)
        workers[1].noteChain(host: 1, notAfter: 1100)
        let parsed = try parsed(workers, [])
        #expect(parsed.value("pinfold_host_certificate_expiry_seconds", ["host": "api"]) == 4000)
        #expect(parsed.value("pinfold_host_chain_expiry_seconds", ["host": "api"]) == 300)
        #expect(parsed.value("pinfold_host_chain_expiry_seconds", ["host": "none"]) == nil)
    }
}
