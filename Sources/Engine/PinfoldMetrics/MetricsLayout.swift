/// The layout of a worker's block of plain counters. The parts have fixed offsets with room to
/// grow, so that an index is a constant plus a raw value.
@usableFromInline
enum PlainLayout {
    @inlinable static var gauges: Int { 0 }
    @inlinable static var counters: Int { 16 }
    static var histograms: Int { 192 }
    /// By reason: exchanges that were refused, failed or cut off.
    static var failures: Int { histograms + 8 * HistogramBuckets.cells }

    static func histogram(_ histogram: WorkerHistogram) -> Int {
        histograms + histogram.rawValue * HistogramBuckets.cells
    }

    static func count(_ dimensions: MetricsDimensions) -> Int { failures + dimensions.reasons }
}

/// The layout of a pinset's block: its verdicts.
enum PinsetLayout {
    /// Room for every `PinResult`.
    static var results: Int { 8 }
    static var cells: Int { results }
}

/// The layout of a block of what the exchanges of a host entry spent their time on.
enum PhaseLayout {
    static var cells: Int { Phase.allCases.count * HistogramBuckets.cells }

    static func histogram(_ phase: Phase) -> Int { Int(phase.rawValue) * HistogramBuckets.cells }
}

/// The layout of a route's block: the request series, the histograms, and the counts by cache
/// result, by reason and by status code.
enum RouteLayout {
    /// Room for every `MetricMethod`, `CodeClass` and `CacheResult`.
    static var methods: Int { 11 }
    static var codes: Int { 6 }
    static var caches: Int { 8 }

    static var duration: Int { methods * codes * caches }
    static var requestSize: Int { duration + HistogramBuckets.cells }
    static var responseSize: Int { requestSize + HistogramBuckets.cells }
    static var firstByte: Int { responseSize + HistogramBuckets.cells }
    static var streams: Int { firstByte + HistogramBuckets.cells }
    static var cacheBytes: Int { streams + 3 * HistogramBuckets.cells }
    static var notStored: Int { cacheBytes + caches }
    /// Room for every reason not to store.
    static var notStoredReasons: Int { 40 }
    static var transformations: Int { notStored + notStoredReasons }
    static var statusCodes: Int {
        transformations + MetricDirection.allCases.count * TransformationCell.allCases.count
    }
    static var failures: Int { statusCodes + StatusCodes.cells }

    static func transformation(_ direction: MetricDirection, _ cell: TransformationCell) -> Int {
        transformations + Int(direction.rawValue) * TransformationCell.allCases.count
            + Int(cell.rawValue)
    }

    static func count(_ dimensions: MetricsDimensions) -> Int { failures + dimensions.reasons }

    /// The histogram of a kind that is not a plain request.
    static func stream(_ kind: ExchangeKind) -> Int {
        streams + (Int(kind.rawValue) - 1) * HistogramBuckets.cells
    }

    static func cacheBytes(_ cache: CacheResult) -> Int { cacheBytes + Int(cache.rawValue) }

    static func series(_ method: MetricMethod, _ code: CodeClass, _ cache: CacheResult) -> Int {
        (Int(method.rawValue) * codes + Int(code.rawValue)) * caches + Int(cache.rawValue)
    }
}

/// A histogram's cells summed over workers.
struct HistogramTotals {
    private(set) var cells = InlineArray<22, UInt64>(repeating: 0)

    mutating func add(_ block: CounterCells, at start: Int) {
        for index in 0..<HistogramBuckets.cells { cells[index] &+= block[start + index] }
    }

    /// The number of values in the buckets up to and including `bucket`.
    func count(bucket: Int) -> UInt64 { cells[bucket] }
    /// How many values there are.
    var count: UInt64 {
        (0..<HistogramBuckets.sumCell).reduce(0) { $0 &+ cells[$1] }
    }
    /// The sum of all values.
    var sum: UInt64 { cells[HistogramBuckets.sumCell] }
}
