import Testing

@testable import PinfoldMetrics

@Suite("The exposition writer")
struct ExpositionWriterTests {
    private func write(
        _ format: ExpositionFormat, _ body: (inout ExpositionWriter) -> Void
    ) -> String {
        var writer = ExpositionWriter(format: format)
        body(&writer)
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    private func everything(_ writer: inout ExpositionWriter) {
        writer.family("app_requests", .counter, help: "Requests.")
        writer.sample(LabelText("route", "a\"b\\c\nd"), 3)
        writer.family("app_cpu_seconds", .counter, help: "CPU time.", unit: "seconds")
        writer.sample(millionths: 1_230_000)
        writer.family("app_depth", .gauge, help: "A \"depth\",\nwith \\.")
        writer.sample(signed: -4)
        writer.family("app_build", .info, help: "Build.")
        writer.sample(LabelText("version", "1.0"), 1)
        writer.family("app_wait_seconds", .histogram, help: "Waits.", unit: "seconds")
        let buckets = HistogramBuckets([100, 2_500_000])
        let cells = CounterCells.allocate(count: HistogramBuckets.cells)
        defer { cells.deallocate() }
        for value: UInt64 in [7, 100, 101, 9_000_000] {
            cells.add(1, to: buckets.bucket(of: value))
            cells.add(value, to: HistogramBuckets.sumCell)
        }
        var totals = HistogramTotals()
        totals.add(cells, at: 0)
        writer.histogram(.none, totals, HistogramScale(buckets, inMillionths: true))
        writer.family("app_size_bytes", .histogram, help: "Sizes.", unit: "bytes")
        writer.histogram(
            LabelText("route", "r"), totals, HistogramScale(buckets, inMillionths: false))
    }

    @Test func `text format 0.0.4 has suffixes in the metadata, no units and no end mark`() {
        #expect(
            write(.text, everything) == #"""
                # HELP app_requests_total Requests.
                # TYPE app_requests_total counter
                app_requests_total{route="a\"b\\c\nd"} 3
                # HELP app_cpu_seconds_total CPU time.
                # TYPE app_cpu_seconds_total counter
                app_cpu_seconds_total 1.23
                # HELP app_depth A "depth",\nwith \\.
                # TYPE app_depth gauge
                app_depth -4
                # HELP app_build_info Build.
                # TYPE app_build_info gauge
                app_build_info{version="1.0"} 1
                # HELP app_wait_seconds Waits.
                # TYPE app_wait_seconds histogram
                app_wait_seconds_bucket{le="0.0001"} 2
                app_wait_seconds_bucket{le="2.5"} 3
                app_wait_seconds_bucket{le="+Inf"} 4
                app_wait_seconds_sum 9.000208
                app_wait_seconds_count 4
                # HELP app_size_bytes Sizes.
                # TYPE app_size_bytes histogram
                app_size_bytes_bucket{route="r",le="100.0"} 2
                app_size_bytes_bucket{route="r",le="2500000.0"} 3
                app_size_bytes_bucket{route="r",le="+Inf"} 4
                app_size_bytes_sum{route="r"} 9000208
                app_size_bytes_count{route="r"} 4

                """#)
    }

    @Test func `OpenMetrics 1.0 has units, escaped quotes in help, an end mark and no suffixes`() {
        #expect(
            write(.openMetrics, everything) == #"""
                # HELP app_requests Requests.
                # TYPE app_requests counter
                app_requests_total{route="a\"b\\c\nd"} 3
                # HELP app_cpu_seconds CPU time.
                # TYPE app_cpu_seconds counter
                # UNIT app_cpu_seconds seconds
                app_cpu_seconds_total 1.23
                # HELP app_depth A \"depth\",\nwith \\.
                # TYPE app_depth gauge
                app_depth -4
                # HELP app_build Build.
                # TYPE app_build info
                app_build_info{version="1.0"} 1
                # HELP app_wait_seconds Waits.
                # TYPE app_wait_seconds histogram
                # UNIT app_wait_seconds seconds
                app_wait_seconds_bucket{le="0.0001"} 2
                app_wait_seconds_bucket{le="2.5"} 3
                app_wait_seconds_bucket{le="+Inf"} 4
                app_wait_seconds_sum 9.000208
                app_wait_seconds_count 4
                # HELP app_size_bytes Sizes.
                # TYPE app_size_bytes histogram
                # UNIT app_size_bytes bytes
                app_size_bytes_bucket{route="r",le="100.0"} 2
                app_size_bytes_bucket{route="r",le="2500000.0"} 3
                app_size_bytes_bucket{route="r",le="+Inf"} 4
                app_size_bytes_sum{route="r"} 9000208
                app_size_bytes_count{route="r"} 4
                # EOF

                """#)
    }

    static let millionthRows: [(UInt64, String)] = [
        (0, "0.0"), (1, "0.000001"), (10, "0.00001"), (999_999, "0.999999"), (1_000_000, "1.0"),
        (1_000_001, "1.000001"), (100_000, "0.1"), (60_000_000, "60.0"),
        (.max, "18446744073709.551615"),
    ]

    @Test(arguments: millionthRows)
    func `millionths are written exactly`(value: UInt64, expected: String) {
        let text = write(.text) { writer in
            writer.family("x", .gauge, help: "h")
            writer.sample(millionths: value)
        }
        #expect(text.hasSuffix("\nx \(expected)\n"))
    }

    static let integerRows: [UInt64] = [0, 9, 10, 99, 100, 4_294_967_296, .max]

    @Test(arguments: integerRows)
    func `integers are written exactly`(value: UInt64) {
        let text = write(.text) { writer in
            writer.family("x", .gauge, help: "h")
            writer.sample(value)
        }
        #expect(text.hasSuffix("\nx \(value)\n"))
    }

    @Test func `the least signed value is written exactly`() {
        let text = write(.text) { writer in
            writer.family("x", .gauge, help: "h")
            writer.sample(signed: .min)
        }
        #expect(text.hasSuffix("\nx -9223372036854775808\n"))
    }
}
