import Testing
import Trust

@testable import PinfoldEngine

@Suite("Logging of what a pinset only reports")
struct PinReportsTests {
    private func subject(
        _ number: Int = 0, pinset: Pinset = Pinset(name: "p")
    ) -> PinReports.Subject {
        PinReports.Subject(pinset: pinset, host: "h\(number)", port: 443)
    }

    /// The pinset with another pin, as a reload gives it.
    private var changed: Pinset {
        Pinset(name: "p", mode: .publicKey, pins: [.publicKey([7])])
    }

    @Test func `each subject is logged once per period, with the count in between`() {
        let reports = PinReports()
        let period = PinReports.periodSeconds
        #expect(reports.note(subject(), now: 0) == 0)
        for second in 1..<period { #expect(reports.note(subject(), now: second) == nil) }
        #expect(reports.note(subject(1), now: 5) == 0)
        #expect(reports.note(subject(), now: period) == UInt64(period - 1))
        #expect(reports.note(subject(), now: 2 * period) == 0)
    }

    @Test func `a flood of subjects is bounded, and makes room once its period is over`() {
        let reports = PinReports()
        let reported = (0..<3 * PinReports.capacity).filter {
            reports.note(subject($0), now: 1) != nil
        }
        #expect(reported.count == PinReports.capacity)
        #expect(reports.note(subject(1_000_000), now: 2) == nil)
        #expect(reports.note(subject(1_000_000), now: 1 + PinReports.periodSeconds) == 0)
    }

    @Test func `after a reload that changes the pinset it is logged at once`() {
        let reports = PinReports()
        #expect(reports.note(subject(), now: 0) == 0)
        #expect(reports.note(subject(), now: 1) == nil)
        #expect(reports.note(subject(pinset: changed), now: 2) == 0)
        #expect(reports.note(subject(pinset: changed), now: 3) == nil)
        // Handshakes that began before the reload are no news.
        #expect(reports.note(subject(), now: 4) == nil)
    }

    @Test func `subjects of the pinset of before a reload make room for those of after it`() {
        let reports = PinReports()
        for number in 0..<PinReports.capacity { _ = reports.note(subject(number), now: 1) }
        #expect(reports.note(subject(-1), now: 2) == nil)
        #expect(reports.note(subject(-1, pinset: changed), now: 2) == 0)
        let reported = (0..<3 * PinReports.capacity).filter {
            reports.note(subject($0, pinset: changed), now: 3) != nil
        }
        #expect(reported.count == PinReports.capacity - 1)
    }
}
