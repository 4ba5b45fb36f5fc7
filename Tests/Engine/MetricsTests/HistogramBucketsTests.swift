import Testing

@testable import PinfoldMetrics

@Suite("Histogram buckets")
struct HistogramBucketsTests {
    static let families = [
        ("durations", HistogramBuckets.durations), ("sizes", HistogramBuckets.sizes),
        ("one bound", HistogramBuckets([1])), ("none", HistogramBuckets([])),
        ("powers", HistogramBuckets([1, 2, 4, 8, 16])),
        ("as many as fit", HistogramBuckets((0..<20).map { UInt64(3) << UInt64($0) })),
        ("the largest", HistogramBuckets([UInt64.max / 2, UInt64.max])),
    ]

    private func walk(_ buckets: HistogramBuckets, _ value: UInt64) -> Int {
        (0..<buckets.count).first { value <= (buckets.bound($0) ?? .max) } ?? buckets.count
    }

    @Test(arguments: families)
    func `a value at a bound is below it, one more is above`(
        name: String, buckets: HistogramBuckets
    ) throws {
        for index in 0..<buckets.count {
            let bound = try #require(buckets.bound(index))
            #expect(buckets.bucket(of: bound) == index)
            #expect(buckets.bucket(of: bound - 1) == walk(buckets, bound - 1))
            if bound < .max { #expect(buckets.bucket(of: bound + 1) == index + 1) }
        }
        #expect(buckets.bound(buckets.count) == nil)
    }

    @Test(arguments: families)
    func `the search finds what walking the bounds finds`(name: String, buckets: HistogramBuckets) {
        var values: [UInt64] = [0, 1, 2, 3, .max, .max - 1]
        for bit in 0..<64 {
            let power = UInt64(1) << UInt64(bit)
            values += [power - 1, power, power + 1, power | power >> 1]
        }
        var random: UInt64 = 88_172_645_463_325_252
        for step in 0..<5000 {
            random ^= random << 13
            random ^= random >> 7
            random ^= random << 17
            values.append(random >> UInt64(step % 64))
        }
        for value in values {
            #expect(buckets.bucket(of: value) == walk(buckets, value), "value \(value)")
        }
    }

    @Test func `durations reach from 50 µs to a minute, sizes from 256 bytes to 1 GiB`() {
        #expect(HistogramBuckets.durations.bound(0) == 50)
        #expect(HistogramBuckets.durations.bound(18) == 60_000_000)
        #expect(HistogramBuckets.durations.count == 19)
        #expect(HistogramBuckets.sizes.bound(0) == 256)
        #expect(HistogramBuckets.sizes.bound(11) == 1 << 30)
        #expect(HistogramBuckets.sizes.count == 12)
    }

    @Test func `a histogram's buckets leave room for its sum`() {
        #expect(HistogramBuckets.maximumBounds + 1 <= HistogramBuckets.sumCell)
        #expect(HistogramBuckets.sumCell < HistogramBuckets.cells)
    }
}
