/// A dictionary of row ids in many parts, each of which grows by itself: that takes microseconds
/// where one dictionary of as many elements would take milliseconds.
struct SplitMap<Value> {
    private static var parts: Int { 256 }
    private var parts = [[Int64: Value]](repeating: [:], count: parts)

    subscript(_ id: Int64) -> Value? {
        get { parts[Int(truncatingIfNeeded: id) & (Self.parts - 1)][id] }
        set { parts[Int(truncatingIfNeeded: id) & (Self.parts - 1)][id] = newValue }
    }

    mutating func removeValue(_ id: Int64) -> Value? {
        parts[Int(truncatingIfNeeded: id) & (Self.parts - 1)].removeValue(forKey: id)
    }

    var count: Int { parts.reduce(0) { $0 + $1.count } }

    /// The smallest id; `nil` if there is none.
    var firstID: Int64? { parts.lazy.compactMap { $0.keys.min() }.min() }

    /// Any of them; `nil` if there is none.
    var first: Value? { parts.lazy.compactMap { $0.first?.value }.first }
}

extension SplitMap: Sendable where Value: Sendable {}
