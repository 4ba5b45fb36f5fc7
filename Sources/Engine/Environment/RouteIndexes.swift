import PinfoldMetrics

/// One worker's memory of which series a listener's exchanges with a host entry count in, so that
/// an exchange finds its series by one look into an array.
package struct RouteIndexes {
    /// Listeners and host entries, the shared ones included.
    private static let stride = LabelTable.defaultCapacity + 1

    private var indexes = [Int16](repeating: -1, count: Self.stride * Self.stride)

    /// The index of the pair's series; by the indexes of the names.
    @inline(__always)
    package mutating func index(
        listener: Int, host: Int, labels: @autoclosure () -> RouteLabels
    ) -> Int {
        let place = min(listener, Self.stride - 1) * Self.stride + min(host, Self.stride - 1)
        let known = indexes[place]
        return known >= 0 ? Int(known) : note(place, listener, host, labels())
    }

    @inline(never)
    private mutating func note(
        _ place: Int, _ listener: Int, _ host: Int, _ labels: RouteLabels
    ) -> Int {
        let index = labels.pairIndex(listener: listener, host: host)
        indexes[place] = Int16(clamping: index)
        return index
    }
}
