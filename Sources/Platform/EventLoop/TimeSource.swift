import Clocks

/// Where a loop, and everything running on it, reads the time: the system's clocks, or those of a
/// test that controls them.
package struct TimeSource {
    package let monotonicMilliseconds: () -> Int64
    /// Milliseconds since 1970.
    package let wallMilliseconds: () -> Int64

    package init(
        monotonicMilliseconds: @escaping () -> Int64, wallMilliseconds: @escaping () -> Int64
    ) {
        self.monotonicMilliseconds = monotonicMilliseconds
        self.wallMilliseconds = wallMilliseconds
    }

    /// The system's clocks.
    package static var system: TimeSource {
        TimeSource(
            monotonicMilliseconds: Clock.monotonicMilliseconds,
            wallMilliseconds: Clock.wallMilliseconds)
    }
}
