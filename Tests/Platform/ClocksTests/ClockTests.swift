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
            name: "wallSeconds", read: { Clock.wallSeconds() },
            unit: 1_000_000_000, clock: CLOCK_REALTIME),
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

    /// In winter, so that no clock is changed meanwhile, in whatever zone this is.
    @Test(arguments: [0, -1, 86_399, 86_400, -86_401, 1_768_000_000, 1_768_050_123] as [Int64])
    func `a day ends when its seconds are over, and another begins`(time: Int64) {
        let (day, secondsLeft) = Clock.localDay(at: time)
        #expect((1...86_400).contains(secondsLeft))
        #expect(Clock.localDay(at: time + secondsLeft - 1) == (day, 1))
        #expect(Clock.localDay(at: time + secondsLeft) == (day + 1, 86_400))
        let minutes = Clock.localMinuteOfWeek(at: time) % 1440
        #expect(minutes == (86_400 - Int(secondsLeft)) / 60)
    }
}
