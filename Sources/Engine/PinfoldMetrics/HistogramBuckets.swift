/// The upper bounds of a histogram's buckets, with a search that does not walk them.
///
/// Bounds are integers in the unit in which values are recorded (microseconds, bytes); each is at
/// least twice the previous one, so that at most one lies between two powers of two. A value's
/// highest bit then determines the bucket with one comparison.
public struct HistogramBuckets: Sendable {
    /// The most bounds that there can be.
    public static var maximumBounds: Int { 20 }

    /// The number of cells of a histogram in a block of counters: its buckets, then the sum.
    @inlinable public static var cells: Int { 22 }
    /// The cell, from a histogram's first, that holds the sum of the values.
    @inlinable public static var sumCell: Int { 21 }

    /// The bounds, in order; those behind `count` are the largest value there is.
    @usableFromInline let bounds: InlineArray<21, UInt64>
    /// By the number of the highest bit set: how many bounds lie below that power of two.
    @usableFromInline let below: InlineArray<64, UInt8>
    /// How many bounds there are.
    public let count: Int

    /// Buckets with these upper bounds (inclusive). Bounds beyond `maximumBounds` and bounds that
    /// are not at least twice their predecessor are a programming error and trap.
    public init(_ list: [UInt64]) {
        precondition(list.count <= HistogramBuckets.maximumBounds, "too many bounds")
        precondition(list.first.map { $0 > 0 } ?? true, "a bound of zero")
        for (one, next) in zip(list, list.dropFirst()) {
            precondition(next / 2 >= one, "bounds closer than a factor of two")
        }
        var bounds = InlineArray<21, UInt64>(repeating: .max)
        for (index, bound) in list.enumerated() { bounds[index] = bound }
        var below = InlineArray<64, UInt8>(repeating: 0)
        for bit in 0..<64 {
            below[bit] = UInt8(list.count(where: { $0 < UInt64(1) << UInt64(bit) }))
        }
        self.bounds = bounds
        self.below = below
        count = list.count
    }

    /// The upper bound of a bucket; `nil` for the last bucket, which has none.
    public func bound(_ bucket: Int) -> UInt64? {
        bucket < count ? bounds[bucket] : nil
    }

    /// The bucket that a value falls in: the first whose bound is not below it; `count` if none is.
    @inlinable @inline(__always)
    public func bucket(of value: UInt64) -> Int {
        let bit = 63 - (value | 1).leadingZeroBitCount
        let first = Int(below[bit])
        return value > bounds[first] ? first + 1 : first
    }

    /// Durations in microseconds: 50 µs to 60 s, three bounds a decade.
    public static let durations = HistogramBuckets([
        50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
        1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
    ])

    /// Durations in microseconds of phases, of which every host entry has several: few bounds, from
    /// 0.5 ms to 60 s.
    public static let phases = HistogramBuckets([
        500, 2500, 10_000, 50_000, 250_000, 1_000_000, 5_000_000, 15_000_000, 60_000_000,
    ])

    /// Durations in microseconds of what may last for hours: 1 s to a day.
    public static let streams = HistogramBuckets(
        [1, 5, 15, 60, 300, 900, 3600, 14_400, 43_200, 86_400].map { $0 * 1_000_000 })

    /// Sizes in bytes: 256 B to 1 GiB, by factors of four.
    public static let sizes = HistogramBuckets((4...15).map { UInt64(1) << UInt64(2 * $0) })
}
