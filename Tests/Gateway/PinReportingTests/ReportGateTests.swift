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
        subject(isEnforced: false), subject(expires: 7), subject(path: "/other"),
    ])
    func `distinguishes failures by each part of them`(_ other: ReportSubject) {
        var gate = ReportGate()
        #expect(gate.decide(subject(), now: 0, time: 0) == .report)
        #expect(gate.decide(other, now: 0, time: 0) == .report)
        #expect(gate.decide(other, now: 0, time: 0) == .count)
    }

    @Test func `lets a pinset report a number of different failures at once and then one a minute`()
    {
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

    @Test func `distinguishes a limited number per pinset and leaves the others theirs`() {
        var gate = ReportGate()
        var reported = 0
        // Each recurs all the time, so that none is ever forgotten.
        for now in stride(from: 0, to: 5 * period, by: Int64.Stride(ReportGate.refillSeconds)) {
            let another = subject(leafKey: "sha256/\(reported)")
            if gate.decide(another, now: now, time: 0) == .report {
                gate.keep(report(), for: another)
                #expect(gate.decide(another, now: now, time: 0) == .count)
                reported += 1
            }
            if now % period == 0 {
                for number in 0..<reported {
                    _ = gate.decide(subject(leafKey: "sha256/\(number)"), now: now, time: 0)
                }
            }
            _ = gate.takeDue(now: now)
        }
        #expect(reported == ReportGate.capacity)
        for number in 0..<2 * ReportGate.capacity {
            let other = subject(pinset: "p\(number)")
            #expect(gate.decide(other, now: 5 * period, time: 0) == .report)
        }
    }

    @Test(arguments: [
        [policy("payments", expires: 7)], [policy("payments", path: "/other")],
        [policy("other")], [],
    ])
    func `forgets failures of pinsets that a reload has changed`(_ next: [ReportPolicy]) {
        var gate = ReportGate()
        for number in 0..<ReportGate.burst + 1 {
            let one = subject(host: "h\(number)")
            guard gate.decide(one, now: 0, time: 0) == .report else { continue }
            gate.keep(report(host: "h\(number)"), for: one)
        }
        #expect(gate.decide(subject(host: "h3"), now: 1, time: 9) == .count)
        #expect(gate.adopt(["payments": policy("payments")]).isEmpty == true)
        #expect(gate.decide(subject(host: "another"), now: 1, time: 9) == .refuse)
        let policies = Dictionary(uniqueKeysWithValues: next.map { ($0.pinset.name, $0) })
        let reports = gate.adopt(policies)
        #expect(reports.map(\.host) == ["h3"])
        #expect(reports.map(\.count) == [1])
        for policy in next {
            var one = subject(host: "h3")
            one.policy = policy
            #expect(gate.decide(one, now: 2, time: 9) == .report)
        }
        #expect(gate.nextDue == (next.isEmpty ? nil : 2 + period))
        #expect(gate.takeAll().isEmpty == true)
    }

    @Test func `limits the bytes of what is counted`() {
        var gate = ReportGate()
        let chain = [[UInt8](repeating: 1, count: PinFailureReport.chainBytes)]
        let room = ReportGate.maximumBytes / PinFailureReport.chainBytes
        for number in 0...room {
            let one = subject(pinset: "p\(number)")
            #expect(gate.decide(one, now: 0, time: 0) == .report)
            // Keeping it again takes no more space.
            for _ in 0..<2 { gate.keep(report(served: chain), for: one) }
            #expect(gate.decide(one, now: 0, time: 0) == .count)
        }
        #expect(gate.counted == room)
        // Forgetting makes space.
        #expect(gate.takeDue(now: period).count == room)
        #expect(gate.takeDue(now: 2 * period).isEmpty == true)
        #expect(gate.nextDue == nil)
        #expect(gate.decide(subject(), now: 2 * period, time: 0) == .report)
        gate.keep(report(served: chain), for: subject())
        #expect(gate.decide(subject(), now: 2 * period, time: 0) == .count)
        #expect(gate.counted == 1)
    }

    @Test func `returns all that was counted at the end`() {
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

    @Test func `reports nothing for a failure whose report was never kept`() {
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
