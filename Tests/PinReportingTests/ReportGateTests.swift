import Testing

@testable import PinReporting

@Suite("The gate before pin failure reports")
struct ReportGateTests {
    private let period = ReportGate.periodSeconds

    @Test func `reports a failure once and counts the same one until the period is over`() {
        var gate = ReportGate()
        #expect(gate.decide(subject(), now: 0, time: 100) == .report)
        gate.keep(report(), for: subject())
        for second in 1...1000 {
            #expect(gate.decide(subject(), now: 1, time: Int64(100 + second)) == .count)
        }
        #expect(gate.takeDue(now: period - 1).isEmpty == true)
        let due = gate.takeDue(now: period)
        #expect(due.map(\.count) == [1000])
        #expect(due.map(\.time) == [1100])
        #expect(gate.takeDue(now: period).isEmpty == true)
        #expect(gate.decide(subject(), now: period + 1, time: 2000) == .count)
        #expect(gate.takeDue(now: 2 * period).map(\.count) == [1])
    }

    @Test func `forgets a failure that did not happen again`() {
        var gate = ReportGate()
        #expect(gate.decide(subject(), now: 0, time: 0) == .report)
        gate.keep(report(), for: subject())
        #expect(gate.nextDue == period)
        #expect(gate.takeDue(now: period).isEmpty == true)
        #expect(gate.nextDue == nil)
        #expect(gate.decide(subject(), now: period, time: 0) == .report)
    }

    @Test(arguments: [
        subject(pinset: "other"), subject(host: "b.example.com"), subject(port: 8443),
        subject(leafKey: "sha256/other"), subject(reason: "untrusted-root"),
        subject(isEnforced: false),
    ])
    func `tells failures apart by each part of them`(_ other: ReportSubject) {
        var gate = ReportGate()
        #expect(gate.decide(subject(), now: 0, time: 0) == .report)
        #expect(gate.decide(other, now: 0, time: 0) == .report)
        #expect(gate.decide(other, now: 0, time: 0) == .count)
    }

    @Test func `lets a pinset report so many different failures at once and then one a minute`() {
        var gate = ReportGate()
        var number = 0
        func decide(at now: Int64, pinset: String = "payments") -> ReportGate.Decision {
            number += 1
            return gate.decide(
                subject(pinset: pinset, leafKey: "sha256/\(number)"), now: now, time: 0)
        }
        for _ in 0..<ReportGate.burst { #expect(decide(at: 0) == .report) }
        #expect(decide(at: 0) == .refuse)
        #expect(decide(at: 0, pinset: "another") == .report)
        #expect(decide(at: ReportGate.refillSeconds - 1) == .refuse)
        #expect(decide(at: ReportGate.refillSeconds) == .report)
        #expect(decide(at: ReportGate.refillSeconds) == .refuse)
        #expect(decide(at: 3 * ReportGate.refillSeconds) == .report)
        #expect(decide(at: 3 * ReportGate.refillSeconds) == .report)
        #expect(decide(at: 3 * ReportGate.refillSeconds) == .refuse)
    }

    @Test func `tells apart so many at a time however many pinsets there are`() {
        var gate = ReportGate()
        var reported = 0
        for number in 0..<10_000
        where gate.decide(subject(pinset: "p\(number)"), now: 0, time: 0) == .report {
            reported += 1
        }
        #expect(reported == ReportGate.capacity)
        _ = gate.takeDue(now: period)
        #expect(gate.decide(subject(pinset: "p9999"), now: period, time: 0) == .report)
    }

    @Test func `gives out all that was counted at the end`() {
        var gate = ReportGate()
        for host in ["a.example.com", "b.example.com"] {
            let one = subject(host: host)
            #expect(gate.decide(one, now: 0, time: 0) == .report)
            gate.keep(report(host: host), for: one)
        }
        #expect(gate.decide(subject(host: "b.example.com"), now: 1, time: 7) == .count)
        let all = gate.takeAll()
        #expect(all.map(\.host) == ["b.example.com"])
        #expect(all.map(\.count) == [1])
        #expect(gate.takeAll().isEmpty == true)
    }

    @Test func `has nothing to give out for a failure whose report was never kept`() {
        var gate = ReportGate()
        _ = gate.decide(subject(), now: 0, time: 0)
        _ = gate.decide(subject(), now: 0, time: 0)
        #expect(gate.takeDue(now: period).isEmpty == true)
    }
}

@Suite("The wait before a destination is tried again")
struct ReportBackoffTests {
    @Test func `begins with a second and doubles up to five minutes`() {
        var backoff = ReportBackoff()
        #expect(backoff.retryAt("a") == nil)
        var waits: [Int64] = []
        for round in 0..<12 {
            #expect(backoff.failed("a", now: 0, asked: nil) == (round == 0))
            waits.append(backoff.retryAt("a") ?? 0)
        }
        #expect(
            waits == [
                1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000,
                300_000, 300_000,
            ])
        backoff.answered("a")
        #expect(backoff.retryAt("a") == nil)
        #expect(backoff.failed("a", now: 5000, asked: nil) == true)
        #expect(backoff.retryAt("a") == 6000)
    }

    @Test(arguments: [
        (0, 1000), (500, 1000), (30_000, 30_000), (3_600_000, 3_600_000),
        (86_400_000, 3_600_000),
    ])
    func `is at least what the server asks for within an hour`(asked: Int64, wait: Int64) {
        var backoff = ReportBackoff()
        _ = backoff.failed("a", now: 0, asked: asked)
        #expect(backoff.retryAt("a") == wait)
    }

    @Test func `is each destination's own`() {
        var backoff = ReportBackoff()
        _ = backoff.failed("a", now: 0, asked: nil)
        #expect(backoff.retryAt("b") == nil)
        backoff.keep(only: ["b"])
        #expect(backoff.retryAt("a") == nil)
    }
}
