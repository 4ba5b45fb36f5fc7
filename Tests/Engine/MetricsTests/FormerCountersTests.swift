import PinfoldMetrics
import Testing

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

private let own = """
    # HELP pinfold_a_total One.
    # TYPE pinfold_a_total counter
    pinfold_a_total{x="1"} 5
    pinfold_a_total{x="2"} 7
    # HELP pinfold_b Two.
    # TYPE pinfold_b gauge
    pinfold_b 3
    # HELP pinfold_c_seconds Three.
    # TYPE pinfold_c_seconds histogram
    pinfold_c_seconds_bucket{le="1.0"} 1
    pinfold_c_seconds_bucket{le="+Inf"} 2
    pinfold_c_seconds_sum 2.75
    pinfold_c_seconds_count 2
    # HELP process_cpu_seconds_total Four.
    # TYPE process_cpu_seconds_total counter
    process_cpu_seconds_total 9.5

    """

private let former = """
    # HELP pinfold_a_total One.
    # TYPE pinfold_a_total counter
    pinfold_a_total{x="1"} 10
    pinfold_a_total{x="a b"} 20
    # TYPE pinfold_b gauge
    pinfold_b 100
    # TYPE pinfold_c_seconds histogram
    pinfold_c_seconds_bucket{le="1.0"} 4
    pinfold_c_seconds_bucket{le="+Inf"} 5
    pinfold_c_seconds_sum 0.250001
    pinfold_c_seconds_count 5
    # TYPE pinfold_gone_total counter
    pinfold_gone_total 8
    # TYPE process_cpu_seconds_total counter
    process_cpu_seconds_total 50

    """

@Suite("Metrics: the counters of a former process")
struct FormerCountersTests {
    @Test func `counters and histograms are added`() {
        let sum = FormerCounters(Array(former.utf8)).added(to: Array(own.utf8))
        #expect(
            text(sum) == """
                # HELP pinfold_a_total One.
                # TYPE pinfold_a_total counter
                pinfold_a_total{x="1"} 15
                pinfold_a_total{x="2"} 7
                pinfold_a_total{x="a b"} 20
                # HELP pinfold_b Two.
                # TYPE pinfold_b gauge
                pinfold_b 3
                # HELP pinfold_c_seconds Three.
                # TYPE pinfold_c_seconds histogram
                pinfold_c_seconds_bucket{le="1.0"} 5
                pinfold_c_seconds_bucket{le="+Inf"} 7
                pinfold_c_seconds_sum 3.000001
                pinfold_c_seconds_count 7
                # HELP process_cpu_seconds_total Four.
                # TYPE process_cpu_seconds_total counter
                process_cpu_seconds_total 9.5

                """)
    }

    @Test func `OpenMetrics names families without total`() {
        let own = """
            # HELP pinfold_a One.
            # TYPE pinfold_a counter
            pinfold_a_total{x="1"} 5
            # EOF

            """
        let sum = FormerCounters(Array(former.utf8)).added(to: Array(own.utf8))
        #expect(
            text(sum) == """
                # HELP pinfold_a One.
                # TYPE pinfold_a counter
                pinfold_a_total{x="1"} 15
                pinfold_a_total{x="a b"} 20
                # EOF

                """)
    }

    @Test func `what was added is added again`() {
        let once = FormerCounters(Array(former.utf8)).added(to: Array(own.utf8))
        let twice = FormerCounters(once).added(to: Array(own.utf8))
        #expect(text(twice).contains("pinfold_a_total{x=\"1\"} 20\n"))
        #expect(text(twice).contains("pinfold_a_total{x=\"a b\"} 20\n"))
        #expect(text(twice).contains("pinfold_c_seconds_sum 5.750001\n"))
    }

    @Test(arguments: [
        ("1", "2", "3"), ("0.5", "0.5", "1"), ("0.000001", "0.1", "0.100001"),
        ("18446744073709551615", "1", "0"), ("1.25", "7", "8.25"), ("NaN", "1", "1"),
        ("1e3", "1", "1"), ("-1", "1", "1"), ("1.1234567", "1", "1"), ("", "1", "1"),
    ])
    func `values are decimal`(former: String, own: String, sum: String) {
        func exposition(_ value: String) -> [UInt8] {
            Array("# TYPE pinfold_x_total counter\npinfold_x_total \(value)\n".utf8)
        }
        let added = FormerCounters(exposition(former)).added(to: exposition(own))
        #expect(text(added) == text(exposition(sum)))
    }

    @Test func `nothing is taken from nonsense`() {
        for nonsense in [
            "", "\n\n", "# TYPE\n", "# TYPE pinfold_a_total counter\nx", "pinfold_a 1",
        ] {
            let former = FormerCounters(Array(nonsense.utf8))
            #expect(former.isEmpty)
            #expect(text(former.added(to: Array(own.utf8))) == own)
        }
    }
}
