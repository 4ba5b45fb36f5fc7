import Glibc

/// SplitMix64.
struct Random {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// From 0 to below 1.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }
}

/// The objects that are asked for.
final class Objects {
    let count: Int
    /// Bytes of each.
    let sizes: UnsafeMutablePointer<Int32>
    /// Milliseconds for which each is fresh.
    let lifetimes: UnsafeMutablePointer<Int32>
    let probabilities: [Double]
    /// Walker's alias method: one random number for each choice.
    private let limits: UnsafeMutablePointer<UInt32>
    private let aliases: UnsafeMutablePointer<Int32>

    init(_ count: Int, exponent: Double) {
        self.count = count
        sizes = .allocate(capacity: count)
        lifetimes = .allocate(capacity: count)
        limits = .allocate(capacity: count)
        aliases = .allocate(capacity: count)
        var random = Random(state: 1)
        for object in 0..<count {
            // The sum of twelve is near enough to a normal distribution.
            let normal = (0..<12).reduce(-6.0) { sum, _ in sum + random.unit() }
            let size = 8192 * exp(1.5 * normal)
            sizes[object] = Int32(min(max(size, 100), 8 * 1024 * 1024))
            let choice = random.unit()
            let seconds = choice < 0.2 ? 60 : choice < 0.6 ? 600 : choice < 0.9 ? 3600 : 86_400
            lifetimes[object] = Int32(seconds * 1000)
        }
        var weights = (1...count).map { exp(-exponent * log(Double($0))) }
        let total = weights.reduce(0, +)
        for object in 0..<count { weights[object] /= total }
        probabilities = weights
        var scaled = weights.map { $0 * Double(count) }
        var small = scaled.indices.filter { scaled[$0] < 1 }
        var large = scaled.indices.filter { scaled[$0] >= 1 }
        while let less = small.popLast(), let more = large.popLast() {
            limits[less] = UInt32(scaled[less] * 4_294_967_295)
            aliases[less] = Int32(more)
            scaled[more] -= 1 - scaled[less]
            if scaled[more] < 1 { small.append(more) } else { large.append(more) }
        }
        for rest in small + large {
            limits[rest] = .max
            aliases[rest] = Int32(rest)
        }
    }

    deinit {
        sizes.deallocate()
        lifetimes.deallocate()
        limits.deallocate()
        aliases.deallocate()
    }

    @inline(__always)
    func choose(_ bits: UInt64) -> Int {
        let column = Int(((bits >> 32) &* UInt64(count)) >> 32)
        return UInt32(truncatingIfNeeded: bits) <= limits[column] ? column : Int(aliases[column])
    }
}
