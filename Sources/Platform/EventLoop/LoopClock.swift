/// A clock for deadlines. It follows the monotonic clock, but excludes time in which the process
/// did not run (SIGSTOP, a suspended machine, a starved container). Deadlines limit how long a peer
/// may take, and during such a gap nobody was waiting for the peer.
public struct LoopClock {
    /// How far a wait, or the work between two readings, may overrun before the excess is excluded.
    public static let allowanceMilliseconds: Int64 = 1000
    /// The longest wait to request while there is a deadline. A gap in the middle of a wait is seen
    /// only at its end, and counts up to the requested time.
    public static let longestWaitMilliseconds: Int32 = 1000

    /// Milliseconds of this clock; never goes back.
    public private(set) var now: Int64
    /// Milliseconds of the monotonic clock at the last reading.
    public private(set) var monotonic: Int64

    /// Starts at a reading of the monotonic clock, with the same time.
    public init(monotonic: Int64) {
        now = monotonic
        self.monotonic = monotonic
    }

    /// The time excluded so far.
    public var skippedMilliseconds: Int64 { monotonic - now }

    /// Advances to a new reading of the monotonic clock.
    /// - Parameter waited: how long a wait since the last reading was allowed to take; negative for
    ///   an unlimited wait, when no deadline could be missed.
    @inline(__always)
    public mutating func advance(to reading: Int64, waited: Int32 = 0) {
        let elapsed = max(0, reading &- monotonic)
        monotonic = max(monotonic, reading)
        if elapsed > Self.allowanceMilliseconds, waited >= 0 {
            now &+= min(elapsed, Int64(waited) &+ Self.allowanceMilliseconds)
        } else {
            now &+= elapsed
        }
    }
}
