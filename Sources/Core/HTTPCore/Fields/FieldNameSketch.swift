/// A 64-bit summary of a set of field names: one bit for each name; several names share a bit.
///
/// Two sketches that do not intersect have no name in common, ignoring case and treating `_` as
/// `-`: this takes one operation, while comparing the names takes many.
public struct FieldNameSketch: Sendable, Equatable {
    /// The bits of the names.
    @usableFromInline private(set) var bits: UInt64 = 0

    /// The sketch of the empty set.
    public init() {}

    /// The sketch of these names.
    public init(_ names: [[UInt8]]) {
        for name in names { insert(name) }
    }

    /// Adds a name in lower or upper case; an empty name adds nothing.
    public mutating func insert(_ name: [UInt8]) {
        guard let last = name.last else { return }
        insert(count: name.count, middle: name[name.count / 2], last: last)
    }

    /// Adds a name, given its length and its middle and last byte. The factors are chosen so that
    /// the names that bypass the cache by default do not collide with those that clients often
    /// send.
    @inline(__always)
    mutating func insert(count: Int, middle: UInt8, last: UInt8) {
        let sum =
            UInt64(truncatingIfNeeded: count) &* 45 &+ Self.folded(last) &* 61
            &+ Self.folded(middle)
        bits |= 1 &<< (sum & 63)
    }

    /// Maps both cases of a letter, and `-` and `_`, to the same value.
    @inline(__always)
    private static func folded(_ byte: UInt8) -> UInt64 {
        UInt64((byte == 0x5F ? 0x2D : byte) | 0x20)
    }

    /// Whether the two sets may have a name in common.
    @inlinable @inline(__always)
    public func intersects(_ other: FieldNameSketch) -> Bool { bits & other.bits != 0 }
}
