import HTTPCore

/// A set of addresses, as ranges in order that do not touch. IPv4-mapped addresses are the IPv4
/// addresses.
struct AddressRanges: Equatable {
    private struct Range<Number: FixedWidthInteger & UnsignedInteger & Sendable>:
        Equatable, Sendable
    {
        var first: Number
        var last: Number
    }

    private var v4: [Range<UInt32>] = []
    private var v6: [Range<UInt128>] = []

    /// How many ranges there are.
    var count: Int { v4.count + v6.count }

    var isEmpty: Bool { v4.isEmpty && v6.isEmpty }

    /// Adds a network. `seal` must be called before addresses are looked up.
    mutating func insert(_ network: IPNetwork) {
        switch network.address {
        case .v4(let first):
            v4.append(Range(first: first, last: first | Self.ones(32 - network.prefixLength)))
        case .v6(let high, let low):
            let first = UInt128(high) << 64 | UInt128(low)
            v6.append(Range(first: first, last: first | Self.ones(128 - network.prefixLength)))
        }
    }

    mutating func formUnion(_ other: AddressRanges) {
        v4 += other.v4
        v6 += other.v6
    }

    /// Makes the set ready for look-ups.
    mutating func seal() {
        Self.join(&v4)
        Self.join(&v6)
    }

    func contains(_ address: IPAddress) -> Bool {
        switch address.unmapped {
        case .v4(let number): Self.isIn(v4, number)
        case .v6(let high, let low): Self.isIn(v6, UInt128(high) << 64 | UInt128(low))
        }
    }

    /// A number whose last bits are set.
    private static func ones<Number: FixedWidthInteger & UnsignedInteger>(_ count: Int) -> Number {
        count == Number.bitWidth ? .max : 1 << Number(count) - 1
    }

    /// Sorts ranges, and joins those that overlap or touch.
    private static func join<Number>(_ ranges: inout [Range<Number>]) {
        ranges.sort { $0.first < $1.first }
        var kept = 0
        for range in ranges {
            if kept > 0, ranges[kept - 1].last == .max || range.first <= ranges[kept - 1].last + 1 {
                ranges[kept - 1].last = max(ranges[kept - 1].last, range.last)
            } else {
                ranges[kept] = range
                kept += 1
            }
        }
        ranges.removeLast(ranges.count - kept)
        if ranges.capacity > kept + kept / 8 + 8 { ranges = Array(ranges[...]) }
    }

    private static func isIn<Number>(_ ranges: [Range<Number>], _ number: Number) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].first <= number { low = middle + 1 } else { high = middle }
        }
        return low > 0 && number <= ranges[low - 1].last
    }
}
