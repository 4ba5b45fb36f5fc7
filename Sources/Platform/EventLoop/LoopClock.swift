/// A clock for deadlines: it follows the monotonic clock, but leaves out time in which the process
/// did not run (SIGSTOP, a suspended machine, a starved container). Deadlines bound how long a peer
/// may take, and during such a gap it was not the peer who was waited for.
package struct LoopClock {
    /// How much longer than asked for a wait, or the work between two readings, may take before the
    /// rest is left out.
    package static let allowanceMilliseconds: Int64 = 1000
    /// The longest wait to ask for while there is a deadline: a gap in the middle of a wait can
    /// only be seen at its end, and counts up to the time that was asked for.
    package static let longestWaitMilliseconds: Int32 = 1000

    /// Milliseconds of this clock; never goes back.
    package private(set) var now: Int64
    /// Milliseconds of the monotonic clock at the last reading.
    package private(set) var monotonic: Int64

    /// Starts at a reading of the monotonic clock, with the same time.
    package init(monotonic: Int64) {
        now = monotonic
        self.monotonic = monotonic
    }

    /// What was left out so far.
    package var skippedMilliseconds: Int64 { monotonic - now }

    /// Goes on to a reading of the monotonic clock.
    /// - Parameter waited: for how long a wait since the last reading was allowed to take;
    ///   negative: without bound, when there was no deadline to be missed.
    @inline(__always)
    package mutating func advance(to reading: Int64, waited: Int32 = 0) {
        let elapsed = max(0, reading &- monotonic)
        monotonic = max(monotonic, reading)
        if elapsed > Self.allowanceMilliseconds, waited >= 0 {
            now &+= min(elapsed, Int64(waited) &+ Self.allowanceMilliseconds)
        } else {
            now &+= elapsed
        }
    }
}
