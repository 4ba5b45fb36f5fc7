import Testing

@testable import AccessPolicy

/// A value that expectations can change.
final class Box<Value> {
    var value: Value
    init(_ value: Value) { self.value = value }
}

@Suite("A token bucket")
struct RateBucketTests {
    private static let second: Int64 = 1_000_000_000

    /// How many things of a cost can be taken until a time, if one tries at each of these times.
    private func taken(
        _ bucket: Box<RateBucket>, cost: Int64, burst: Int64, at times: some Sequence<Int64>
    ) -> Int {
        var count = 0
        for time in times {
            while bucket.value.wait(burst: burst, at: time) == 0 {
                _ = bucket.value.take(cost, burst: burst, at: time)
                count += 1
            }
        }
        return count
    }

    @Test(arguments: [1, 3, 7, 50, 1000, 9999])
    func `gives what its rate says, and the burst before it`(perSecond: Int) {
        for burst in [1, 2, 100] {
            let interval = RequestRate(count: perSecond, per: .second).interval
            let bucket = Box(RateBucket())
            let advance = interval * Int64(burst - 1)
            var (time, count): (Int64, Int) = (5, 0)
            while time <= 10 * Self.second {
                let wait = bucket.value.wait(burst: advance, at: time)
                time += wait
                guard wait == 0 else { continue }
                _ = bucket.value.take(interval, burst: advance, at: time)
                count += 1
            }
            let expected = 10 * perSecond + burst
            #expect(abs(count - expected) <= 1 + expected / 5000, "\(perSecond), \(burst)")
        }
    }

    @Test func `saves no more than the burst`() {
        let bucket = Box(RateBucket())
        #expect(taken(bucket, cost: 10, burst: 40, at: [0]) == 5)
        #expect(taken(bucket, cost: 10, burst: 40, at: [1_000_000]) == 5)
        #expect(taken(bucket, cost: 10, burst: 40, at: [1_000_009]) == 0)
        #expect(taken(bucket, cost: 10, burst: 40, at: [1_000_010]) == 1)
    }

    @Test func `says how long to wait`() {
        let bucket = Box(RateBucket())
        #expect(bucket.value.wait(burst: 0, at: 100) == 0)
        #expect(bucket.value.take(10, burst: 0, at: 100) == 100)
        #expect(bucket.value.wait(burst: 0, at: 103) == 7)
        // Reserved.
        #expect(bucket.value.take(10, burst: 0, at: 103) == 110)
        #expect(bucket.value.wait(burst: 0, at: 103) == 17)
        #expect(bucket.value.debt(at: 103) == 17)
        bucket.value.giveBack(10)
        #expect(bucket.value.wait(burst: 0, at: 103) == 7)
        #expect(!bucket.value.isAtRest(at: 109))
        #expect(bucket.value.isAtRest(at: 110))
    }

    @Test func `gives nothing and takes nothing when the clock goes back or stops`() {
        let bucket = Box(RateBucket())
        #expect(taken(bucket, cost: 10, burst: 0, at: [1000]) == 1)
        #expect(taken(bucket, cost: 10, burst: 0, at: [500, 0, -1000, 1000, 1009]) == 0)
        #expect(bucket.value.wait(burst: 0, at: 0) == 10)
        #expect(taken(bucket, cost: 10, burst: 0, at: [1010]) == 1)
    }

    @Test func `gives only the burst when the clock leaps`() {
        let bucket = Box(RateBucket())
        #expect(taken(bucket, cost: 10, burst: 20, at: [0, .max / 2]) == 6)
    }

    @Test func `who was served late loses nothing`() {
        let bucket = Box(RateBucket())
        #expect(bucket.value.take(100, burst: 0, at: 0) == 0)
        #expect(bucket.value.take(100, burst: 0, at: 0) == 100)
        // Served at 170 in place of 100: the next is due at 200, and the one after it at 300.
        #expect(bucket.value.take(100, burst: 0, late: 70, at: 170) == 200)
        #expect(bucket.value.take(100, burst: 0, late: 150, at: 450) == 300)
        #expect(bucket.value.take(100, burst: 0, late: 0, at: 600) == 600)
    }

    @Test func `does not overflow`() {
        let bucket = Box(RateBucket())
        #expect(bucket.value.take(.max, burst: .max, at: .max) == 0)
        #expect(bucket.value.wait(burst: 0, at: 0) == 0)
        #expect(bucket.value.take(.max, burst: 0, at: 0) == .max)
        bucket.value.giveBack(.max)
        var other = RateBucket()
        _ = other.take(1, burst: .max, at: .min)
        #expect(other.wait(burst: .max, at: .max) == 0)
        #expect(Int64.max.addingSaturated(1) == .max)
        #expect(Int64.min.addingSaturated(-1) == .min)
        #expect(Int64.max.multipliedSaturated(by: 2) == .max)
        #expect(ByteCost.of(.max, at: 1) == .max)
        #expect(ByteCost.of(.max, at: .max) == 1_000_000_000)
        #expect(ByteCost.of(1 << 20, at: 1 << 20) == 1_000_000_000)
        #expect(ByteCost.of(1, at: 3) == 333_333_334)
        #expect(ByteCost.of(0, at: 0) == 0)
    }

    @Test func `a refusal says when to ask again in whole seconds`() {
        let table: [(Int64, Int64)] = [
            (0, 1), (1, 1), (1_000_000_000, 1), (1_000_000_001, 2), (-5, 1), (.max - 1, 0),
        ]
        for (wait, seconds) in table where seconds > 0 {
            #expect(RateReason(.requests, retryAfter: wait).retrySeconds == seconds)
        }
        #expect(RateReason(.day, retryAfter: .max).retrySeconds > 9_000_000_000)
    }
}
