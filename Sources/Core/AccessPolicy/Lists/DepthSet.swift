/// The numbers of labels, 1 to 127, that names of a set have. No name has more: 253 bytes have room
/// for 127 labels of one byte.
struct DepthSet: Equatable {
    static let deepest = 127

    private var low: UInt64 = 0
    private var high: UInt64 = 0

    /// The largest, or 0.
    var maximum: Int {
        high != 0 ? 127 - high.leadingZeroBitCount : max(0, 63 - low.leadingZeroBitCount)
    }

    @inline(__always)
    func contains(_ depth: Int) -> Bool {
        let word = depth < 64 ? low : high
        return word >> UInt64(truncatingIfNeeded: depth & 63) & 1 != 0
    }

    mutating func insert(_ depth: Int) {
        precondition((1...Self.deepest).contains(depth))
        if depth < 64 { low |= 1 << UInt64(depth) } else { high |= 1 << UInt64(depth - 64) }
    }

    mutating func formUnion(_ other: DepthSet) {
        low |= other.low
        high |= other.high
    }
}
