import Clocks

/// Where a loop, and everything running on it, reads the time: the system's clocks, or those of a
/// test that controls them.
public struct TimeSource {
    public let monotonicMilliseconds: () -> Int64
    /// Milliseconds since 1970.
    public let wallMilliseconds: () -> Int64

    public init(
        monotonicMilliseconds: @escaping () -> Int64, wallMilliseconds: @escaping () -> Int64
    ) {
        self.monotonicMilliseconds = monotonicMilliseconds
        self.wallMilliseconds = wallMilliseconds
    }

    /// The system's clocks.
    public static var system: TimeSource {
        TimeSource(
            monotonicMilliseconds: Clock.monotonicMilliseconds,
            wallMilliseconds: Clock.wallMilliseconds)
    }
}
