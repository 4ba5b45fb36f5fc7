/// A 64-bit summary of a set of field names: one bit for each name, which several names share.
///
/// Two sketches that do not intersect have no name in common, letter case and `_` for `-` not
/// counting: that is one operation, where comparing the names takes many.
package struct FieldNameSketch: Sendable, Equatable {
    /// The bits of the names.
    @usableFromInline private(set) var bits: UInt64 = 0

    /// The sketch of no name.
    package init() {}

    /// The sketch of these names.
    package init(_ names: [[UInt8]]) {
        for name in names { insert(name) }
    }

    /// Adds a name in lower or upper case; an empty one adds nothing.
    package mutating func insert(_ name: [UInt8]) {
        guard let last = name.last else { return }
        insert(count: name.count, middle: name[name.count / 2], last: last)
    }

    /// Adds the name of so many bytes, of which these are the one in its middle and the last. The
    /// factors tell the names that bypass the cache by default from those that clients often send.
    @inline(__always)
    mutating func insert(count: Int, middle: UInt8, last: UInt8) {
        let sum =
            UInt64(truncatingIfNeeded: count) &* 45 &+ Self.folded(last) &* 61
            &+ Self.folded(middle)
        bits |= 1 &<< (sum & 63)
    }

    /// The same for both cases of a letter, and for `-` and `_`.
    @inline(__always)
    private static func folded(_ byte: UInt8) -> UInt64 {
        UInt64((byte == 0x5F ? 0x2D : byte) | 0x20)
    }

    /// Whether some name may be in both.
    @inlinable @inline(__always)
    package func intersects(_ other: FieldNameSketch) -> Bool { bits & other.bits != 0 }
}
