import Testing

@testable import PinfoldMetrics

@Suite("Figures of pinsets")
struct PinsetFiguresTests {
    /// Behind `other` and `none`.
    private let api = LabelIndex(slot: 2, use: 0)
    private let a = LabelIndex(slot: 1, use: 0)
    private let b = LabelIndex(slot: 2, use: 0)
    private let dimensions = MetricsDimensions(reasons: 1)

    private func parsed(
        _ workers: [WorkerMetrics], _ pinsets: [PinsetMetrics]
    ) throws -> ParsedExposition {
        var service = ServiceMetrics()
        service.wallSeconds = 1000
        service.pinsets = pinsets
        let snapshot = MetricsSnapshot(
            workers: workers, hosts: LabelTable(["api"], permanent: ["none"]),
            pinsets: LabelTable(["a", "b"]), service: service)
        return try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
    }

    @Test func `matches have the beginning of the pin as label, all from the start`() throws {
        let key = "sha256/AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefg="
        let certificate = String(repeating: "0123456789abcdef", count: 4)
        let parsed = try parsed(
            [],
            [
                PinsetMetrics(
                    label: "a",
                    pins: [
                        PinMetrics(text: key, matches: 2),
                        PinMetrics(text: certificate, matches: 0),
                        PinMetrics(text: nil, matches: 7),
                    ]),
                PinsetMetrics(label: "b"),
                PinsetMetrics(label: "c", pins: [PinMetrics(text: key, matches: 1)]),
            ])
        let name = "pinfold_pin_matches_total"
        let expected: [(String, String, Double?)] = [
            ("a", "sha256/AbCdEfGhIjKl", 2), ("a", "0123456789ab", 0), ("a", "other", 7),
            ("b", "other", nil), ("c", "sha256/AbCdEfGhIjKl", 1),
        ]
        for (pinset, pin, count) in expected {
            #expect(
                parsed.value(name, ["pinset": pinset, "pin": pin]) == count, "\(pinset) \(pin)")
        }
    }

    @Test(
        arguments: [
            (PinsetMetrics(label: "a"), 1, nil),
            (PinsetMetrics(label: "a", isEnforced: false), 0, nil),
            (PinsetMetrics(label: "a", expires: 1600), 1, 1600),
            (PinsetMetrics(label: "a", expires: 400), 1, 400),
            (PinsetMetrics(label: "a", expires: 1000, isReportedAfter: true), 0, 1000),
            (PinsetMetrics(label: "a", expires: 1001, isReportedAfter: true), 1, 1001),
        ] as [(PinsetMetrics, Double, Double?)])
    func `whether a pinset is in force, and until when`(
        figures: PinsetMetrics, enforced: Double, expires: Double?
    ) throws {
        let parsed = try parsed([], [figures])
        #expect(parsed.value("pinfold_pinset_enforced", ["pinset": "a"]) == enforced)
        let name = "pinfold_pinset_expiry_timestamp_seconds"
        #expect(parsed.value(name, ["pinset": "a"]) == expires)
    }

    @Test func `every pinset has figures of its own, however many there are`() throws {
        let names = (0..<500).map { "pinset\($0)" }
        var service = ServiceMetrics()
        let pin = PinMetrics(text: "sha256/x", matches: 0)
        service.pinsets = names.map { PinsetMetrics(label: $0, pins: [pin]) }
        let snapshot = MetricsSnapshot(
            workers: [], pinsets: LabelTable(names), service: service)
        let parsed = try ParsedExposition(
            String(decoding: snapshot.exposition(.text), as: UTF8.self), isOpenMetrics: false)
        let last = ["pinset": "pinset499"]
        #expect(parsed.value("pinfold_pinset_enforced", last) == 1)
        #expect(
            parsed.value("pinfold_pin_matches_total", last.merging(["pin": pin.label]) { $1 }) == 0)
        #expect(
            parsed.value(
                "pinfold_pin_evaluations_total", last.merging(["result": "passed"]) { $1 }) == 0)
    }

    @Test func `the end of a verified chain is shown beside that of the certificate`() throws {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: dimensions) }
        workers[0].noteCertificate(host: api, notAfter: 5000, at: 900)
        workers[0].noteChain(host: api, notAfter: 1100, at: 900)
        workers[1].noteChain(host: api, notAfter: 1300, at: 950)
        let parsed = try parsed(workers, [])
        let certificate = "pinfold_certificate_not_after_timestamp_seconds"
        #expect(parsed.value(certificate, ["host": "api", "use": "upstream"]) == 5000)
        let chain = "pinfold_chain_not_after_timestamp_seconds"
        #expect(parsed.value(chain, ["host": "api"]) == 1100)
        #expect(parsed.value(chain, ["host": "none"]) == nil)
    }
}
