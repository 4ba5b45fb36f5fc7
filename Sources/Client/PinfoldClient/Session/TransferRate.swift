/// The rate at which bytes are transferred, over the last seconds.
package struct TransferRate: Sendable {
    private static let windowMilliseconds: Int64 = 5000
    /// A few marks per second suffice: the last one moves until it is far enough from the one
    /// before.
    private static let stepMilliseconds: Int64 = 200
    private var marks: [(time: Int64, bytes: Int64)] = []

    package init() {}

    /// Records the current amount.
    ///
    /// - Parameters:
    ///   - bytes: The total number of bytes transferred.
    ///   - now: The current time in milliseconds.
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

    /// The number of bytes per second, or `nil` if it is not known yet.
    package var perSecond: Int64? {
        guard let first = marks.first, let last = marks.last, last.time > first.time else {
            return nil
        }
        return max(0, (last.bytes - first.bytes) * 1000 / (last.time - first.time))
    }
}
