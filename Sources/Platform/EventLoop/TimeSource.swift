import Clocks

/// Where a loop, and everything running on it, reads the time: the system's clocks, or those of a
/// test that controls them.
public struct TimeSource {
    public let monotonicMilliseconds: () -> Int64
    /// The same in nanoseconds.
    public let monotonicNanoseconds: () -> Int64
    /// Milliseconds since 1970.
    public let wallMilliseconds: () -> Int64

    public init(
        monotonicMilliseconds: @escaping () -> Int64, wallMilliseconds: @escaping () -> Int64,
        monotonicNanoseconds: (() -> Int64)? = nil
    ) {
        self.monotonicMilliseconds = monotonicMilliseconds
        self.monotonicNanoseconds =
            monotonicNanoseconds ?? { monotonicMilliseconds() * 1_000_000 }
        self.wallMilliseconds = wallMilliseconds
    }

    /// The system's clocks.
    public static var system: TimeSource {
        TimeSource(
            monotonicMilliseconds: Clock.monotonicMilliseconds,
            wallMilliseconds: Clock.wallMilliseconds,
            monotonicNanoseconds: Clock.monotonicNanoseconds)
    }
}
