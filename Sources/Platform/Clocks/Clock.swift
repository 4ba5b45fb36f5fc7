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

    /// Microseconds since 1970 (UTC).
    public static func wallMicroseconds() -> Int64 {
        let time = read(CLOCK_REALTIME)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Seconds since 1970 (UTC). Not of the coarse clock, which is some milliseconds late: what a
    /// loop holds to be over would not be over for whoever reads it.
    public static func wallSeconds() -> Int64 {
        Int64(read(CLOCK_REALTIME).tv_sec)
    }

    /// The minute of the week in local time, counted from Monday at midnight (localtime_r(3)).
    /// - Parameter seconds: since 1970 (UTC).
    public static func localMinuteOfWeek(at seconds: Int64) -> Int {
        var time = time_t(seconds)
        var local = tm()
        guard localtime_r(&time, &local) != nil else { return 0 }
        // tm_wday counts from Sunday.
        let day = (Int(local.tm_wday) + 6) % 7
        return (day * 24 + Int(local.tm_hour)) * 60 + Int(local.tm_min)
    }

    /// The number of the day in local time, counted from 1970, and the seconds until it is over; on
    /// a day with a change of the clocks, by the time before the change.
    /// - Parameter seconds: since 1970 (UTC).
    public static func localDay(at seconds: Int64) -> (day: Int64, secondsLeft: Int64) {
        var time = time_t(seconds)
        var local = tm()
        let offset = localtime_r(&time, &local) != nil ? Int64(local.tm_gmtoff) : 0
        let (day, second) = (seconds + offset).quotientAndRemainder(dividingBy: 86_400)
        return second < 0 ? (day - 1, -second) : (day, 86_400 - second)
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
