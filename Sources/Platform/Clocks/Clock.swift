import CLinux

/// The system's clocks, each in the unit that its callers count in.
///
/// Reading them does not enter the kernel (vdso(7)), except for the process's CPU time.
public enum Clock {
    /// Milliseconds since an arbitrary start; never goes back.
    @Sendable
    @inlinable public static func monotonicMilliseconds() -> Int64 {
        let time = read(CLOCK_MONOTONIC)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Microseconds since an arbitrary start; never goes back.
    @inlinable public static func monotonicMicroseconds() -> Int64 {
        let time = read(CLOCK_MONOTONIC)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Nanoseconds since an arbitrary start; never goes back.
    public static func monotonicNanoseconds() -> Int64 {
        let time = read(CLOCK_MONOTONIC)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Milliseconds since the machine started, including the time it was asleep.
    public static func bootMilliseconds() -> Int64 {
        let time = read(CLOCK_BOOTTIME)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Milliseconds since 1970 (UTC).
    public static func wallMilliseconds() -> Int64 {
        let time = read(CLOCK_REALTIME)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Seconds since 1970 (UTC), to the tick of the kernel's clock: the cheapest reading.
    public static func coarseWallSeconds() -> Int64 {
        Int64(read(CLOCK_REALTIME_COARSE).tv_sec)
    }

    /// Microseconds of CPU time that all threads of the process have used.
    public static func processCPUMicroseconds() -> Int64 {
        let time = read(CLOCK_PROCESS_CPUTIME_ID)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Every kernel has the clocks used here; a failed read must not be mistaken for a time.
    @inlinable static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        let code = clock_gettime(clock, &time)
        precondition(code == 0, "clock_gettime")
        return time
    }
}
