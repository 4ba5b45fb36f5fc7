/// How fast bytes move, over the last seconds.
package struct TransferRate: Sendable {
    private static let windowMilliseconds: Int64 = 5000
    /// A few marks a second are enough: the last moves until it is so far from the one before.
    private static let stepMilliseconds: Int64 = 200
    private var marks: [(time: Int64, bytes: Int64)] = []

    package init() {}

    /// - Parameters:
    ///   - bytes: All that have moved.
    ///   - now: In milliseconds.
    package mutating func note(_ bytes: Int64, at now: Int64) {
        let last = marks.count - 1
        if last > 0, marks[last].time - marks[last - 1].time < Self.stepMilliseconds {
            marks[last] = (now, bytes)
        } else {
            marks.append((now, bytes))
        }
        while marks.count > 2, let first = marks.first,
            now - first.time > Self.windowMilliseconds
        {
            marks.removeFirst()
        }
    }

    /// Bytes per second; nil: not known yet.
    package var perSecond: Int64? {
        guard let first = marks.first, let last = marks.last, last.time > first.time else {
            return nil
        }
        return max(0, (last.bytes - first.bytes) * 1000 / (last.time - first.time))
    }
}
