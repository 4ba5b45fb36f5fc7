import Testing

@testable import PinfoldConfiguration

@Suite("Sampling of the access log")
struct AccessLogSamplingTests {
    private func rule(
        _ share: Int, _ statuses: [ClosedRange<UInt16>] = [], longer: Int64? = nil,
        reason: AccessLogSampling.Outcome = .none
    ) -> AccessLogSampling.Rule {
        var rule = AccessLogSampling.Rule()
        rule.statuses = statuses
        rule.longerThanMilliseconds = longer
        rule.reason = reason
        rule.shareMillionths = share
        return rule
    }

    private func share(
        _ rules: [AccessLogSampling.Rule], _ status: UInt16, _ milliseconds: UInt64 = 0,
        failed: Bool = false
    ) -> Int {
        AccessLogSampling(rules: rules)
            .share(
                status: status, durationMicroseconds: milliseconds * 1000, hasReason: failed)
    }

    @Test func `without rules everything is logged`() {
        #expect(share([], 200) == AccessLogSampling.whole)
        #expect(share([], 0, failed: true) == AccessLogSampling.whole)
    }

    @Test func `the first rule that matches decides, and what none matches is logged`() {
        let rules = [rule(7, longer: 1000), rule(1, [200...299, 304...304]), rule(2, [200...399])]
        #expect(share(rules, 200, 1000) == 1)
        #expect(share(rules, 200, 1001) == 7)
        #expect(share(rules, 304) == 1)
        #expect(share(rules, 301) == 2)
        #expect(share(rules, 404) == AccessLogSampling.whole)
        #expect(share(rules, 0) == AccessLogSampling.whole)
    }

    @Test func `what failed is left out only by a rule that says so`() {
        #expect(share([rule(1)], 502, failed: true) == AccessLogSampling.whole)
        #expect(share([rule(1), rule(2, reason: .any)], 502, failed: true) == 2)
        #expect(share([rule(2, reason: .any)], 200) == AccessLogSampling.whole)
        // A response that broke off has a status of success.
        #expect(share([rule(1, [200...299])], 200, failed: true) == AccessLogSampling.whole)
    }

    @Test(arguments: [0, 1, 10_000, 250_000, 999_999, 1_000_000])
    func `a share of consecutive numbers is taken, with no pattern in them`(millionths: Int) {
        let count = 200_000
        // As exchanges are numbered: the worker and the start above, a counter below.
        let base: UInt64 = 0x65d5_3100_0000_0001
        var taken = 0
        var last = 0
        var longestGap = 0
        for number in 0..<count
        where AccessLogSampling.takes(exchange: base &+ UInt64(number), share: millionths) {
            taken += 1
            longestGap = max(longestGap, number - last)
            last = number
        }
        let expected = Double(count) * Double(millionths) / 1_000_000
        #expect(abs(Double(taken) - expected) <= 5 * expected.squareRoot() + 1)
        if millionths >= 10_000 { #expect(longestGap < 20 * 1_000_000 / millionths) }
    }

    @Test func `a larger share contains a smaller one, and the answer is always the same`() {
        for number in (0..<10_000 as Range<UInt64>) {
            let small = AccessLogSampling.takes(exchange: number, share: 10_000)
            #expect(small == AccessLogSampling.takes(exchange: number, share: 10_000))
            if small { #expect(AccessLogSampling.takes(exchange: number, share: 20_000)) }
        }
    }

    @Test func `a rule covers those that its conditions contain`() {
        #expect(rule(1).covers(rule(2, [200...299], longer: 5)))
        #expect(!rule(1, [200...299]).covers(rule(2)))
        #expect(rule(1, [200...299]).covers(rule(2, [204...204])))
        #expect(!rule(1).covers(rule(2, reason: .any)))
        #expect(!rule(1, longer: 10).covers(rule(2, longer: 5)))
        #expect(rule(1, longer: 5).covers(rule(2, longer: 10)))
    }
}
