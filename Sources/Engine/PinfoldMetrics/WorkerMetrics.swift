/// The listener and the host entry of an exchange, by which most metrics of exchanges are labelled.
public struct RouteIndex: Sendable, Hashable {
    /// The listener's name.
    public var listener: LabelIndex
    /// The host entry's name.
    public var host: LabelIndex

    /// The route for names that have no series of their own (any more).
    public static let other = RouteIndex(listener: .other, host: .other)

    /// The pair of these.
    @inlinable
    public init(listener: LabelIndex, host: LabelIndex) {
        self.listener = listener
        self.host = host
    }

    var owner: UInt64 { SlotOwner.of(listener, host) }
}

/// One finished exchange, reduced to what is counted.
public struct ExchangeRecord: Sendable, Equatable {
    /// The listener and the host entry.
    public var route: RouteIndex
    /// The request's method.
    public var method: MetricMethod
    /// The status that the client was sent; 0 if none was.
    public var status: UInt16
    /// The cache result.
    public var cache: CacheResult
    /// From the request's complete head to the response's last byte, in microseconds.
    public var durationMicroseconds: UInt64
    /// The request body's bytes, as content (without chunk framing).
    public var requestBytes: UInt64
    /// The response body's bytes, as content (without chunk framing).
    public var responseBytes: UInt64
    /// What it was.
    public var kind = ExchangeKind.request
    /// From sending the request's head to receiving the response's head, in microseconds; `nil` if
    /// no server was contacted, or none responded.
    public var firstByteMicroseconds: UInt64?
    /// Why it was refused or failed, by the index of the reason; `nil` if it was not.
    public var failure: Int?
    /// Why the response was not stored, by the index of the reason; `nil` if it was, or if there
    /// was none to store.
    public var notStored: Int?

    /// A record of these values.
    @inlinable
    public init(
        route: RouteIndex, method: MetricMethod, status: UInt16, cache: CacheResult,
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

/// The sizes of the dimensions that the program determines, equal for all workers of a gateway. The
/// numbers of listeners, host entries and pinsets depend on the configuration, and change.
public struct MetricsDimensions: Sendable, Equatable {
    /// How many failure reasons there are.
    public var reasons: Int

    /// Dimensions of at least one series each.
    public init(reasons: Int) { self.reasons = max(1, reasons) }
}

/// The counters of one thread: written by it alone, read by the scrape from any thread.
///
/// Every thread that counts (each worker, the resolver, the store) has its own; the scrape adds
/// them up. Nothing here locks or allocates, except for the first count of a host entry, a pinset,
/// or the exchanges of a listener with a host entry, which allocates a block (about 8 KiB for the
/// latter). Blocks are kept for the names of a ``LabelTable``, by their slots.
public final class WorkerMetrics: Sendable {
    /// The sizes of the dimensions.
    public let dimensions: MetricsDimensions
    @usableFromInline let plain: CounterCells
    let hosts = SlotBlocks(cells: HostLayout.cells)
    let phases = SlotBlocks(cells: PhaseLayout.cells)
    let pinsets = SlotBlocks(cells: PinsetLayout.cells)
    private let routes: RouteBlocks
    /// Status codes that have no cell in a route's block.
    private let rareCodes = RouteBlocks(cells: StatusCodes.all.count)
    /// The route and block in which the last exchange was counted; usually the same for the next
    /// one. For the owning thread only.
    nonisolated(unsafe) private var lastRoute: (route: RouteIndex, block: CounterCells)?
    private let durations = HistogramBuckets.durations
    private let sizes = HistogramBuckets.sizes
    private let statusCodes = StatusCodes()
    private let phaseBuckets = HistogramBuckets.phases

    /// Counters at zero.
    public init(dimensions: MetricsDimensions) {
        self.dimensions = dimensions
        plain = .allocate(count: PlainLayout.count(dimensions))
        routes = RouteBlocks(cells: RouteLayout.count(dimensions))
    }

    deinit { plain.deallocate() }

    // MARK: Writing, on the owning thread only

    /// Counts a finished exchange: its request series, the route's histograms, and its reasons.
    public func recordExchange(_ exchange: ExchangeRecord) {
        let block = block(ofRoute: exchange.route)
        let code = CodeClass(status: exchange.status)
        block.add(1, to: RouteLayout.series(exchange.method, code, exchange.cache))
        if let cell = statusCodes.cell(of: exchange.status) {
            block.add(1, to: RouteLayout.statusCodes + cell)
        } else {
            countRareCode(exchange.status, of: exchange.route)
        }
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
            let reason = min(max(0, reason), dimensions.reasons - 1)
            block.add(1, to: RouteLayout.failures + reason)
            plain.add(1, to: PlainLayout.failures + reason)
            self.block(exchange.route.host, of: hosts).add(1, to: HostLayout.failures)
        }
    }

    /// Counts a status code that is not among the common ones; not 0, which is none.
    @inline(never)
    private func countRareCode(_ status: UInt16, of route: RouteIndex) {
        guard StatusCodes.all.contains(Int(status)) else { return }
        let block = rareCodes.forWriting(route) ?? rareCodes.ofOther(insteadOf: route)
        block.add(1, to: Int(status) - StatusCodes.all.lowerBound)
    }

    /// Counts what a finished exchange spent its time on. How long tunnels and the like are open is
    /// in histograms of their own.
    @inline(never)
    public func recordPhases(_ times: PhaseTimes, of exchange: ExchangeRecord) {
        let block = block(exchange.route.host, of: phases)
        // One after the other: most exchanges have the first byte and the body only.
        count(.firstByte, times, in: block)
        if exchange.kind == .request { count(.body, times, in: block) }
        count(.queue, times, in: block)
        count(.dns, times, in: block)
        count(.connect, times, in: block)
        count(.tls, times, in: block)
    }

    @inline(__always)
    private func count(_ phase: Phase, _ times: PhaseTimes, in block: CounterCells) {
        guard let microseconds = times[phase] else { return }
        let start = PhaseLayout.histogram(phase)
        block.add(1, to: start + phaseBuckets.bucket(of: microseconds))
        block.add(microseconds, to: start + HistogramBuckets.sumCell)
    }

    /// A route's block; that of `other` for a name whose slot has been reassigned.
    @inline(__always)
    func block(ofRoute route: RouteIndex) -> CounterCells {
        if let lastRoute, lastRoute.route == route { return lastRoute.block }
        return findBlock(ofRoute: route)
    }

    @inline(never)
    private func findBlock(ofRoute route: RouteIndex) -> CounterCells {
        let block = routes.forWriting(route) ?? routes.ofOther(insteadOf: route)
        lastRoute = (route, block)
        return block
    }

    /// A block by a label, in the same way.
    func block(_ label: LabelIndex, of blocks: borrowing SlotBlocks) -> CounterCells {
        if let block = blocks.forWriting(label.slot, owner: SlotOwner.of(label)) { return block }
        return blocks.ofOther()
    }

    /// Adds to a counter.
    @inlinable
    public func add(_ counter: WorkerCounter, _ amount: UInt64 = 1) {
        plain.add(amount, to: PlainLayout.counters + counter.rawValue)
    }

    /// Adds to a gauge; `change` may be negative.
    @inlinable
    public func adjust(_ gauge: WorkerGauge, by change: Int64) {
        plain.add(UInt64(bitPattern: change), to: PlainLayout.gauges + gauge.rawValue)
    }

    /// Sets a gauge.
    @inlinable
    public func set(_ gauge: WorkerGauge, to value: Int64) {
        plain.set(UInt64(bitPattern: value), at: PlainLayout.gauges + gauge.rawValue)
    }

    /// Records a duration in microseconds.
    public func record(_ histogram: WorkerHistogram, microseconds: UInt64) {
        let start = PlainLayout.histogram(histogram)
        plain.add(1, to: start + durations.bucket(of: microseconds))
        plain.add(microseconds, to: start + HistogramBuckets.sumCell)
    }

    /// Counts a pinset's verdict.
    public func recordPinEvaluation(pinset: LabelIndex, result: PinResult) {
        block(pinset, of: pinsets).add(1, to: Int(result.rawValue))
    }

    // MARK: Reading, from any thread

    /// A counter's value.
    public func value(_ counter: WorkerCounter) -> UInt64 {
        plain[PlainLayout.counters + counter.rawValue]
    }

    /// A gauge's value.
    public func value(_ gauge: WorkerGauge) -> Int64 {
        Int64(bitPattern: plain[PlainLayout.gauges + gauge.rawValue])
    }

    /// How many verdicts a pinset gave.
    public func pinEvaluations(pinset: LabelIndex, result: PinResult) -> UInt64 {
        reading(pinset, of: pinsets)?[Int(result.rawValue)] ?? 0
    }

    /// How many exchanges were refused, failed or cut off for a reason, by its index.
    public func failures(reason: Int) -> UInt64 {
        reason < dimensions.reasons ? plain[PlainLayout.failures + reason] : 0
    }

    /// A block by a label; `nil` if nothing was counted for it.
    func reading(_ label: LabelIndex, of blocks: borrowing SlotBlocks) -> CounterCells? {
        blocks.reading(label.slot, owner: SlotOwner.of(label))
    }

    /// Adds a histogram's cells to `totals`.
    func addCells(of histogram: WorkerHistogram, to totals: inout HistogramTotals) {
        totals.add(plain, at: PlainLayout.histogram(histogram))
    }

    /// A route's counters; `nil` if it has had no exchange.
    func block(route: RouteIndex) -> CounterCells? { routes.reading(route) }

    /// A route's counters of status codes that are rare; `nil` if it has had none.
    func rareCodes(route: RouteIndex) -> CounterCells? { rareCodes.reading(route) }
}
