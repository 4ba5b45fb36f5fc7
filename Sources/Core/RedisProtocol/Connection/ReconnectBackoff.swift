/// When a connection that failed is tried again: after a delay that doubles, of which a random half
/// is left out, so that a fleet does not come back all at once.
package struct ReconnectBackoff: Sendable, Hashable {
    /// The first and the longest delay, in milliseconds.
    package let firstMilliseconds: Int64
    package let longestMilliseconds: Int64
    /// Failures one after the other.
    package private(set) var failures = 0

    package init(firstMilliseconds: Int64 = 50, longestMilliseconds: Int64 = 5000) {
        self.firstMilliseconds = max(1, firstMilliseconds)
        self.longestMilliseconds = max(self.firstMilliseconds, longestMilliseconds)
    }

    /// Another failure.
    /// - Parameter random: any 64 bits.
    /// - Returns: for how long to wait, in milliseconds.
    package mutating func failed(random: UInt64) -> Int64 {
        let doublings = min(failures, 30)
        failures += 1
        let (product, overflows) = firstMilliseconds.multipliedReportingOverflow(
            by: 1 << Int64(doublings))
        let delay = overflows ? longestMilliseconds : min(product, longestMilliseconds)
        let half = delay / 2
        return delay - Int64(random % UInt64(half + 1))
    }

    /// It has been of use.
    package mutating func succeeded() { failures = 0 }
}
