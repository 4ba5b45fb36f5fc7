/// One finished exchange, reduced to what is counted.
package struct ExchangeRecord: Sendable, Equatable {
    /// The index of the pair of listener and host entry (`ExchangeLabels`); indexes without a
    /// label count as `other`.
    package var route: Int
    /// The request's method.
    package var method: MetricMethod
    /// The status that the client was sent; 0 if none was.
    package var status: UInt16
    /// What the cache had to do with it.
    package var cache: CacheResult
    /// From the request's complete head to the response's last byte, in microseconds.
    package var durationMicroseconds: UInt64
    /// The request body's bytes, as content (without chunk framing).
    package var requestBytes: UInt64
    /// The response body's bytes, as content (without chunk framing).
    package var responseBytes: UInt64
    /// What it was.
    package var kind = ExchangeKind.request
    /// From the request's head sent to the response's head received, in microseconds; nil: no
    /// server was asked, or none answered.
    package var firstByteMicroseconds: UInt64?
    /// Why it was refused or failed, by the index of the reason; nil if it was not.
    package var failure: Int?
    /// Why the response was not stored, by the index of the reason; nil if it was, or if there was
    /// none to store.
    package var notStored: Int?

    /// A record of these values.
    @inlinable
    package init(
        route: Int, method: MetricMethod, status: UInt16, cache: CacheResult,
        durationMicroseconds: UInt64, requestBytes: UInt64, responseBytes: UInt64
    ) {
        self.route = route
        self.method = method
        self.status = status
        self.cache = cache
        self.durationMicroseconds = durationMicroseconds
        self.requestBytes = requestBytes
        self.responseBytes = responseBytes
    }
}

/// The sizes of the dimensions, equal for all workers of a gateway.
package struct MetricsDimensions: Sendable, Equatable {
    /// Series of the route dimension, `other` included (`LabelTable.seriesCapacity`).
    package var routes: Int
    /// Series of the pinset dimension, `other` included (`LabelTable.seriesCapacity`).
    package var pinsets: Int
    /// Series of the host dimension, `other` included (`LabelTable.seriesCapacity`).
    package var hosts: Int
    /// How many failure reasons there are.
    package var reasons: Int

    /// Dimensions of at least one series each.
    package init(
        routes: Int = ExchangeLabels.capacity + 1,
        pinsets: Int = LabelTable.defaultCapacity + 1,
        hosts: Int = LabelTable.defaultCapacity + 1, reasons: Int
    ) {
        self.routes = max(1, routes)
        self.pinsets = max(1, pinsets)
        self.hosts = max(1, hosts)
        self.reasons = max(1, reasons)
    }
}

/// The counters of one thread: written by it alone, read by the scrape from any thread.
///
/// Every thread that counts (each worker, the resolver, the store) has one of its own; the scrape
/// adds them up. Nothing here locks or allocates, but for the first exchange on a route, which
/// allocates that route's block (about 7 KiB).
package final class WorkerMetrics: Sendable {
    /// The sizes of the dimensions.
    package let dimensions: MetricsDimensions
    @usableFromInline let plain: CounterCells
    let hosts: CounterCells
    private let routes: RouteBlocks
    private let durations = HistogramBuckets.durations
    private let sizes = HistogramBuckets.sizes

    /// Counters at zero.
    package init(dimensions: MetricsDimensions) {
        self.dimensions = dimensions
        plain = .allocate(count: PlainLayout.count(dimensions))
        hosts = .allocate(count: dimensions.hosts * HostLayout.cells)
        routes = RouteBlocks(
            count: dimensions.routes, cells: RouteLayout.count(dimensions))
    }

    deinit {
        plain.deallocate()
        hosts.deallocate()
    }

    // MARK: Writing, on the owning thread only

    /// Counts a finished exchange: its request series, the route's histograms, and its reasons.
    package func recordExchange(_ exchange: ExchangeRecord) {
        let block = block(ofRoute: exchange.route)
        let code = CodeClass(status: exchange.status)
        block.add(1, to: RouteLayout.series(exchange.method, code, exchange.cache))
        let duration = exchange.durationMicroseconds
        if exchange.kind == .request {
            block.add(1, to: RouteLayout.duration + durations.bucket(of: duration))
            block.add(duration, to: RouteLayout.duration + HistogramBuckets.sumCell)
        } else {
            let start = RouteLayout.stream(exchange.kind)
            block.add(1, to: start + HistogramBuckets.streams.bucket(of: duration))
            block.add(duration, to: start + HistogramBuckets.sumCell)
        }
        block.add(1, to: RouteLayout.requestSize + sizes.bucket(of: exchange.requestBytes))
        block.add(exchange.requestBytes, to: RouteLayout.requestSize + HistogramBuckets.sumCell)
        block.add(1, to: RouteLayout.responseSize + sizes.bucket(of: exchange.responseBytes))
        block.add(exchange.responseBytes, to: RouteLayout.responseSize + HistogramBuckets.sumCell)
        block.add(exchange.responseBytes, to: RouteLayout.cacheBytes(exchange.cache))
        if let time = exchange.firstByteMicroseconds {
            block.add(1, to: RouteLayout.firstByte + durations.bucket(of: time))
            block.add(time, to: RouteLayout.firstByte + HistogramBuckets.sumCell)
        }
        if let reason = exchange.notStored {
            block.add(1, to: RouteLayout.notStored + min(reason, RouteLayout.notStoredReasons - 1))
        }
        if let reason = exchange.failure {
            block.add(1, to: RouteLayout.failures + min(reason, dimensions.reasons - 1))
        }
    }

    /// A route's block; indexes without a label count as `other`.
    @inline(__always)
    func block(ofRoute route: Int) -> CounterCells {
        let last = dimensions.routes - 1
        return routes.blockForWriting(route >= 0 && route < last ? route : last)
    }

    /// Adds to a counter.
    @inlinable
    package func add(_ counter: WorkerCounter, _ amount: UInt64 = 1) {
        plain.add(amount, to: PlainLayout.counters + counter.rawValue)
    }

    /// Adds to a gauge; `change` may be negative.
    @inlinable
    package func adjust(_ gauge: WorkerGauge, by change: Int64) {
        plain.add(UInt64(bitPattern: change), to: PlainLayout.gauges + gauge.rawValue)
    }

    /// Sets a gauge.
    @inlinable
    package func set(_ gauge: WorkerGauge, to value: Int64) {
        plain.set(UInt64(bitPattern: value), at: PlainLayout.gauges + gauge.rawValue)
    }

    /// Records a duration in microseconds.
    package func record(_ histogram: WorkerHistogram, microseconds: UInt64) {
        let start = PlainLayout.histogram(histogram)
        plain.add(1, to: start + durations.bucket(of: microseconds))
        plain.add(microseconds, to: start + HistogramBuckets.sumCell)
    }

    /// Counts a pinset's verdict, by the index of the pinset's label; indexes without a label count
    /// as `other`.
    package func recordPinEvaluation(pinset: Int, result: PinResult) {
        let last = dimensions.pinsets - 1
        let index = pinset >= 0 && pinset < last ? pinset : last
        plain.add(1, to: PlainLayout.pinset(index) + Int(result.rawValue))
    }

    /// Counts that a server's chain has a pin, by the indexes of the pinset's label and of the pin
    /// in the pinset; pins from the sixteenth on count together.
    package func recordPinMatch(pinset: Int, pin: Int) {
        let last = dimensions.pinsets - 1
        let index = pinset >= 0 && pinset < last ? pinset : last
        plain.add(1, to: pinCell(pinset: index, pin: pin))
    }

    private func pinCell(pinset: Int, pin: Int) -> Int {
        PlainLayout.pins(ofPinset: pinset, dimensions) + min(max(0, pin), PlainLayout.pins - 1)
    }

    // MARK: Reading, from any thread

    /// A counter's value.
    package func value(_ counter: WorkerCounter) -> UInt64 {
        plain[PlainLayout.counters + counter.rawValue]
    }

    /// A gauge's value.
    package func value(_ gauge: WorkerGauge) -> Int64 {
        Int64(bitPattern: plain[PlainLayout.gauges + gauge.rawValue])
    }

    /// How many verdicts a pinset gave.
    package func pinEvaluations(pinset: Int, result: PinResult) -> UInt64 {
        plain[PlainLayout.pinset(pinset) + Int(result.rawValue)]
    }

    /// How often a server's chain had a pin.
    package func pinMatches(pinset: Int, pin: Int) -> UInt64 {
        plain[pinCell(pinset: pinset, pin: pin)]
    }

    /// Adds a histogram's cells to `totals`.
    func addCells(of histogram: WorkerHistogram, to totals: inout HistogramTotals) {
        totals.add(plain, at: PlainLayout.histogram(histogram))
    }

    /// A route's counters; `nil` if it has had no exchange.
    func block(route: Int) -> CounterCells? { routes.block(route) }
}
