/// A set of ``FieldID``s in one word.
public struct FieldIDSet: OptionSet, Sendable, Hashable {
    /// Bit n stands for the field whose raw value is n.
    public var rawValue: UInt64

    /// The set with these bits.
    @inlinable @inline(__always)
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The set of one field.
    @inlinable @inline(__always)
    public init(_ id: FieldID) { self.rawValue = 1 &<< UInt64(id.rawValue) }

    /// The set of the given fields.
    public init(_ ids: [FieldID]) {
        rawValue = ids.reduce(0) { $0 | 1 &<< UInt64($1.rawValue) }
    }

    /// Whether `id` is in the set.
    @inlinable @inline(__always)
    public func contains(_ id: FieldID) -> Bool {
        rawValue & (1 &<< UInt64(id.rawValue)) != 0
    }

    /// Adds `id`.
    @inlinable @inline(__always)
    public mutating func insert(_ id: FieldID) { rawValue |= 1 &<< UInt64(id.rawValue) }

    /// Removes `id`.
    @inlinable @inline(__always)
    public mutating func remove(_ id: FieldID) { rawValue &= ~(1 &<< UInt64(id.rawValue)) }

    /// Whether any field is in both sets.
    @inlinable @inline(__always)
    public func intersects(_ other: FieldIDSet) -> Bool { rawValue & other.rawValue != 0 }

    /// The fields in the set, by raw value.
    public var ids: [FieldID] { FieldID.allCases.filter { contains($0) } }
}
