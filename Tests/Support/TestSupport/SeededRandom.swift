/// Reproducible numbers: the same for the same seed, everywhere (SplitMix64).
package struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    /// The sequence for the seed.
    package init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }

    /// A number from 0 up to, but not including, the bound.
    package mutating func below(_ bound: Int) -> Int {
        bound <= 1 ? 0 : Int(truncatingIfNeeded: next() % UInt64(truncatingIfNeeded: bound))
    }

    /// True in this many cases out of a hundred.
    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

    /// One of the values; there must be at least one.
    package mutating func pick<T>(_ values: [T]) -> T { values[below(values.count)] }

    /// This many bytes.
    package mutating func bytes(_ count: Int) -> [UInt8] {
        // The storage of all empty arrays is shared, and would be written to.
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { memory, written in
            var word: UInt64 = 0
            for index in 0..<count {
                if index & 7 == 0 { word = next() }
                memory[index] = UInt8(truncatingIfNeeded: word)
                word >>= 8
            }
            written = count
        }
    }
}
