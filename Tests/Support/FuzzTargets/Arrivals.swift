/// The ways in which bytes may arrive. What is read of a stream must not depend on them.
enum Arrivals {
    /// For each way, where each piece ends: all at once, byte by byte, in small pieces, in larger
    /// ones. The lengths depend on the bytes alone, so that a finding is found again.
    static func ends(of bytes: [UInt8]) -> [[Int]] {
        guard !bytes.isEmpty else { return [[0]] }
        var lengths = Lengths(bytes)
        return [
            [bytes.count], Array(1...bytes.count), lengths.cut(bytes.count, atMost: 5),
            lengths.cut(bytes.count, atMost: 64),
        ]
    }

    /// Reads the bytes as they arrive in each of the ways.
    ///
    /// - Returns: what was read, which must be the same each time.
    static func read<Outcome: Equatable>(
        _ bytes: [UInt8], _ read: (_ ends: [Int]) throws(FuzzCheckError) -> Outcome
    ) throws(FuzzCheckError) -> Outcome {
        let ways = ends(of: bytes)
        let first = try read(ways[0])
        for way in ways.dropFirst() {
            let other = try read(way)
            guard other == first else {
                throw FuzzCheckError("in pieces \(other) was read, at once \(first)")
            }
        }
        return first
    }

    /// Numbers that look random, by the algorithm SplitMix64.
    private struct Lengths {
        private var state: UInt64

        init(_ bytes: [UInt8]) {
            state = bytes.reduce(0xCBF2_9CE4_8422_2325) {
                ($0 ^ UInt64($1)) &* 0x0100_0000_01B3
            }
        }

        mutating func cut(_ count: Int, atMost most: UInt64) -> [Int] {
            var ends: [Int] = []
            while ends.last ?? 0 < count {
                ends.append(min(count, (ends.last ?? 0) + 1 + Int(next() % most)))
            }
            return ends
        }

        private mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }
}
