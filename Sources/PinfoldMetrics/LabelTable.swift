/// The label values of one dimension, in the order of their indexes.
///
/// Values come from the configuration, never from traffic. The table only grows: a reload keeps the
/// index of every value seen before, so that counters go on. Beyond `capacity` values, a new one
/// shares the series named `other`.
package struct LabelTable: Sendable, Equatable {
    /// The most values with a series of their own, unless told otherwise.
    package static let defaultCapacity = 100
    /// The value of the series that is shared beyond the capacity.
    package static let overflowLabel = "other"

    /// The most values with a series of their own.
    package let capacity: Int
    /// The values, by index.
    package private(set) var labels: [String] = []
    private var indexes: [String: Int] = [:]

    /// A table that starts with `labels` (as by `index(for:)`, in order).
    package init(_ labels: [String] = [], capacity: Int = LabelTable.defaultCapacity) {
        self.capacity = max(0, capacity)
        for label in labels { _ = index(for: label) }
    }

    /// The index of the series `other`: the one past the last possible value.
    package var overflowIndex: Int { capacity }

    /// How many series there can be, `other` included: the size of an array over the indexes.
    package var seriesCapacity: Int { capacity + 1 }

    /// The index of a value, which is added if it is new and there is room.
    package mutating func index(for label: String) -> Int {
        if label == LabelTable.overflowLabel { return overflowIndex }
        if let known = indexes[label] { return known }
        guard labels.count < capacity else { return overflowIndex }
        indexes[label] = labels.count
        labels.append(label)
        return labels.count - 1
    }

    /// The value at an index; `other` for every index that has none.
    package subscript(index: Int) -> String {
        labels.indices.contains(index) ? labels[index] : LabelTable.overflowLabel
    }
}
