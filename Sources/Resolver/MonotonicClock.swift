import CLinux

/// Milliseconds since some fixed moment, never going back (CLOCK_MONOTONIC).
@Sendable
package func monotonicMilliseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
