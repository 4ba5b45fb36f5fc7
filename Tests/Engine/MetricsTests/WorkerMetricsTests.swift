import Testing

@testable import PinfoldMetrics

@Suite("Worker metrics")
struct WorkerMetricsTests {
    static let dimensions = MetricsDimensions(reasons: 5)

    /// The route of a host entry in a slot.
    private func route(_ slot: Int) -> RouteIndex {
        RouteIndex(
            listener: LabelIndex(slot: 1, use: 0), host: LabelIndex(slot: UInt32(slot), use: 0))
    }

    private func pinset(_ slot: Int) -> LabelIndex { LabelIndex(slot: UInt32(slot), use: 0) }

    private func exchange(
        route slot: Int = 0, method: MetricMethod = .get, status: UInt16 = 200,
        cache: CacheResult = .miss, duration: UInt64 = 0, request: UInt64 = 0, response: UInt64 = 0
    ) -> ExchangeRecord {
        ExchangeRecord(
            route: route(slot), method: method, status: status, cache: cache,
            durationMicroseconds: duration, requestBytes: request, responseBytes: response)
    }

    @Test func `an exchange counts in its own series and in no other`() throws {
        for method in MetricMethod.allCases {
            for code in CodeClass.allCases {
                for cache in CacheResult.allCases {
                    let metrics = WorkerMetrics(dimensions: Self.dimensions)
                    let status = UInt16(code.rawValue) * 100
                    metrics.recordExchange(
                        exchange(route: 1, method: method, status: status, cache: cache))
                    let block = try #require(metrics.block(route: route(1)))
                    let place = RouteLayout.series(method, code, cache)
                    #expect(block[place] == 1)
                    #expect((0..<RouteLayout.duration).reduce(0) { $0 + block[$1] } == 1)
                }
            }
        }
    }

    static let statuses: [(UInt16, CodeClass)] = [
        (0, .none), (99, .none), (100, .informational), (199, .informational), (200, .success),
        (299, .success), (304, .redirection), (404, .clientError), (499, .clientError),
        (500, .serverError), (599, .serverError), (600, .none), (999, .none), (.max, .none),
    ]

    @Test(arguments: statuses)
    func `the status class is the first digit, and none for what is no status`(
        status: UInt16, expected: CodeClass
    ) {
        #expect(CodeClass(status: status) == expected)
    }

    @Test func `every number of three digits is a status code with a place of its own`() throws {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        for status in StatusCodes.all {
            metrics.recordExchange(exchange(route: 1, status: UInt16(status)))
        }
        for status: UInt16 in [0, 99, 1000, .max] {
            metrics.recordExchange(exchange(route: 1, status: status))
        }
        let block = try #require(metrics.block(route: route(1)))
        let rare = try #require(metrics.rareCodes(route: route(1)))
        let common = Set(StatusCodes.common)
        #expect(common.count == StatusCodes.common.count)
        for cell in StatusCodes.common.indices {
            #expect(block[RouteLayout.statusCodes + cell] == 1)
        }
        for cell in 0..<StatusCodes.all.count {
            let isCommon = common.contains(UInt16(cell + StatusCodes.all.lowerBound))
            #expect(rare[cell] == (isCommon ? 0 : 1))
        }
    }

    @Test func `a route has memory for rare status codes from the first of them on`() {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        for status: UInt16 in [0, 101, 200, 404, 502, 522] {
            metrics.recordExchange(exchange(route: 1, status: status))
        }
        #expect(metrics.rareCodes(route: route(1)) == nil)
        metrics.recordExchange(exchange(route: 1, status: 555))
        #expect(metrics.rareCodes(route: route(1)) != nil)
        #expect(metrics.rareCodes(route: route(0)) == nil)
    }

    @Test func `a route has no memory before its first exchange`() {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        for slot in 0..<4 { #expect(metrics.block(route: route(slot)) == nil) }
        metrics.recordExchange(exchange(route: 2))
        #expect(metrics.block(route: route(2)) != nil)
        #expect(metrics.block(route: route(1)) == nil)
        #expect(metrics.block(route: route(1 << 24)) == nil)
    }

    @Test func `durations and sizes fall in their buckets and add up`() throws {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        metrics.recordExchange(exchange(duration: 50, request: 256, response: 1 << 30))
        metrics.recordExchange(exchange(duration: 51, request: 257, response: (1 << 30) + 1))
        let block = try #require(metrics.block(route: route(0)))
        #expect(block[RouteLayout.duration] == 1)
        #expect(block[RouteLayout.duration + 1] == 1)
        #expect(block[RouteLayout.duration + HistogramBuckets.sumCell] == 101)
        #expect(block[RouteLayout.requestSize] == 1)
        #expect(block[RouteLayout.requestSize + 1] == 1)
        #expect(block[RouteLayout.requestSize + HistogramBuckets.sumCell] == 513)
        #expect(block[RouteLayout.responseSize + 11] == 1)
        #expect(block[RouteLayout.responseSize + 12] == 1)
        #expect(block[RouteLayout.responseSize + HistogramBuckets.sumCell] == (1 << 31) + 1)
    }

    @Test func `every counter, gauge and histogram has a place of its own`() {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        for counter in WorkerCounter.allCases {
            metrics.add(counter, UInt64(counter.rawValue) + 1)
        }
        for gauge in WorkerGauge.allCases {
            metrics.adjust(gauge, by: Int64(gauge.rawValue) - 3)
        }
        for pinset in 0..<3 {
            for result in PinResult.allCases {
                for _ in 0...pinset {
                    metrics.recordPinEvaluation(pinset: self.pinset(pinset), result: result)
                }
            }
        }
        for histogram in WorkerHistogram.allCases {
            metrics.record(histogram, microseconds: UInt64(histogram.rawValue) + 7)
        }
        for counter in WorkerCounter.allCases {
            #expect(metrics.value(counter) == UInt64(counter.rawValue) + 1)
        }
        for gauge in WorkerGauge.allCases {
            #expect(metrics.value(gauge) == Int64(gauge.rawValue) - 3)
        }
        for pinset in 0..<3 {
            for result in PinResult.allCases {
                let count = metrics.pinEvaluations(
                    pinset: self.pinset(pinset), result: result)
                #expect(count == UInt64(pinset) + 1)
            }
        }
        for histogram in WorkerHistogram.allCases {
            var totals = HistogramTotals()
            metrics.addCells(of: histogram, to: &totals)
            #expect(totals.count(bucket: 0) == 1)
            #expect(totals.sum == UInt64(histogram.rawValue) + 7)
        }
    }

    @Test func `the fixed places have room for all that is counted`() {
        #expect(WorkerGauge.allCases.count <= PlainLayout.counters - PlainLayout.gauges)
        #expect(WorkerCounter.allCases.count <= PlainLayout.histograms - PlainLayout.counters)
        #expect(WorkerHistogram.allCases.count <= 8)
        #expect(PinResult.allCases.count <= PinsetLayout.results)
        #expect(MetricMethod.allCases.count == RouteLayout.methods)
        #expect(CodeClass.allCases.count == RouteLayout.codes)
        #expect(CacheResult.allCases.count == RouteLayout.caches)
        #expect(StatusCodes.common.count <= StatusCodes.cells)
    }

    @Test func `a gauge can be set, and can be negative`() {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        metrics.set(.acceptPaused, to: 1)
        #expect(metrics.value(.acceptPaused) == 1)
        metrics.set(.acceptPaused, to: 0)
        metrics.adjust(.tunnelsOpen, by: -2)
        #expect(metrics.value(.tunnelsOpen) == -2)
        metrics.adjust(.tunnelsOpen, by: 3)
        #expect(metrics.value(.tunnelsOpen) == 1)
    }

    @Test func `each reason and kind of stream has a place of its own in a route's block`() throws {
        let metrics = WorkerMetrics(dimensions: Self.dimensions)
        for reason in 0..<5 {
            for _ in 0...reason {
                var record = exchange(route: 0)
                record.failure = reason
                record.notStored = reason
                record.kind = .tunnel
                metrics.recordExchange(record)
            }
        }
        let block = try #require(metrics.block(route: route(0)))
        for reason in 0..<5 {
            #expect(block[RouteLayout.failures + reason] == UInt64(reason) + 1)
            #expect(block[RouteLayout.notStored + reason] == UInt64(reason) + 1)
        }
        func count(_ start: Int) -> UInt64 {
            (0..<HistogramBuckets.sumCell).reduce(0) { $0 + block[start + $1] }
        }
        #expect(count(RouteLayout.stream(.tunnel)) == 15)
        #expect(count(RouteLayout.stream(.upgrade)) == 0)
        #expect(count(RouteLayout.stream(.eventStream)) == 0)
        #expect(count(RouteLayout.duration) == 0)
        #expect(block.count == RouteLayout.count(Self.dimensions))
    }

    @Test func `dimensions have at least one series each`() {
        let metrics = WorkerMetrics(
            dimensions: MetricsDimensions(reasons: 0))
        metrics.recordExchange(exchange(route: 0))
        metrics.recordPinEvaluation(pinset: .other, result: .passed)
        #expect(metrics.block(route: route(0)) != nil)
    }

    @Test func `labels of a dimension are distinct`() {
        #expect(Set(MetricMethod.allCases.map { "\($0.label)" }).count == 11)
        #expect(Set(CodeClass.allCases.map { "\($0.label)" }).count == 6)
        #expect(Set(CacheResult.allCases.map { "\($0.label)" }).count == 8)
        #expect(Set(PinResult.allCases.map { "\($0.label)" }).count == 7)
    }

    @Test func `readers see sums grow while a thread writes, and the whole at the end`() async {
        let workers = (0..<2).map { _ in WorkerMetrics(dimensions: Self.dimensions) }
        let exchanges = 20_000
        await withTaskGroup(of: Void.self) { group in
            for worker in workers {
                group.addTask {
                    for step in 0..<exchanges {
                        worker.add(.retriesSuperseded)
                        worker.recordExchange(
                            ExchangeRecord(
                                route: route(step % 4), method: .get, status: 200, cache: .hit,
                                durationMicroseconds: UInt64(step), requestBytes: 0,
                                responseBytes: 1))
                    }
                }
            }
            group.addTask {
                var last: UInt64 = 0
                for _ in 0..<200 {
                    let sum = workers.reduce(UInt64(0)) { $0 + $1.value(.retriesSuperseded) }
                    #expect(sum >= last)
                    last = sum
                    for worker in workers {
                        let block = worker.block(route: route(3))
                        #expect((block?[RouteLayout.responseSize] ?? 0) <= UInt64(exchanges))
                    }
                }
            }
        }
        let series = RouteLayout.series(.get, .success, .hit)
        let total = workers.reduce(UInt64(0)) { sum, worker in
            sum + (0..<4).reduce(UInt64(0)) { $0 + (worker.block(route: route($1))?[series] ?? 0) }
        }
        #expect(total == UInt64(2 * exchanges))
    }
}
