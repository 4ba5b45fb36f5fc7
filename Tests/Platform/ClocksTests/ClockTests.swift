import CLinux
import Clocks
import Testing

/// Compares the clocks with those of the C library.
@Suite("Clocks")
struct ClockTests {
    private static func now(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        #expect(clock_gettime(clock, &time) == 0)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// A reading, the nanoseconds of its unit, and the clock that it reads.
    struct Reading: Sendable, CustomTestStringConvertible {
        var name: String
        var read: @Sendable () -> Int64
        var unit: Int64
        var clock: clockid_t
        var testDescription: String { name }
    }

    static let readings = [
        Reading(
            name: "monotonicMilliseconds", read: { Clock.monotonicMilliseconds() },
            unit: 1_000_000, clock: CLOCK_MONOTONIC),
        Reading(
            name: "monotonicMicroseconds", read: { Clock.monotonicMicroseconds() },
            unit: 1000, clock: CLOCK_MONOTONIC),
        Reading(
            name: "monotonicNanoseconds", read: { Clock.monotonicNanoseconds() },
            unit: 1, clock: CLOCK_MONOTONIC),
        Reading(
            name: "bootMilliseconds", read: { Clock.bootMilliseconds() },
            unit: 1_000_000, clock: CLOCK_BOOTTIME),
        Reading(
            name: "wallMilliseconds", read: { Clock.wallMilliseconds() },
            unit: 1_000_000, clock: CLOCK_REALTIME),
        Reading(
            name: "coarseWallSeconds", read: { Clock.coarseWallSeconds() },
            unit: 1_000_000_000, clock: CLOCK_REALTIME_COARSE),
        Reading(
            name: "processCPUMicroseconds", read: { Clock.processCPUMicroseconds() },
            unit: 1000, clock: CLOCK_PROCESS_CPUTIME_ID),
    ]

    @Test(arguments: readings)
    func `a reading lies between two of the C library's, in its unit`(_ reading: Reading) {
        let before = Self.now(reading.clock) / reading.unit
        let read = reading.read()
        let after = Self.now(reading.clock) / reading.unit
        #expect(before <= read && read <= after)
    }
}
