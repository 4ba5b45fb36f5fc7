import Testing

@testable import Engine

@Suite("When it is told of what a pinset only reports")
struct PinReportsTests {
    private func subject(_ number: Int = 0) -> PinReports.Subject {
        PinReports.Subject(pinset: "p", host: "h\(number)", port: 443)
    }

    @Test func `each subject is told of once in a period, with what came in between`() {
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
        let told = (0..<3 * PinReports.capacity).filter {
            reports.note(subject($0), now: 1) != nil
        }
        #expect(told.count == PinReports.capacity)
        #expect(reports.note(subject(1_000_000), now: 2) == nil)
        #expect(reports.note(subject(1_000_000), now: 1 + PinReports.periodSeconds) == 0)
    }
}
