import Testing

@testable import PinfoldClient

/// The sequence of SplitMix64 from a seed.
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

@Suite("The policy of retries")
struct RetryPolicyTests {
    private let now: Int64 = 784_111_777

    private func decide(
        _ failure: RetryPolicy.FailureReason, _ attempt: RetryPolicy.Attempt,
        _ policy: RetryPolicy = RetryPolicy(), seed: UInt64 = 1
    ) -> RetryPolicy.Decision {
        var generator = Seeded(state: seed)
        return policy.decide(after: failure, of: attempt, now: now, using: &generator)
    }

    private func isRetried(
        _ failure: RetryPolicy.FailureReason, _ attempt: RetryPolicy.Attempt
    ) -> Bool {
        if case .retry = decide(failure, attempt) { true } else { false }
    }

    @Test(
        arguments: [
            ("GET", true), ("HEAD", true), ("OPTIONS", true), ("TRACE", true), ("PUT", true),
            ("DELETE", true), ("PROPFIND", true), ("QUERY", true),
            ("REPORT", true), ("SEARCH", true), ("POST", false), ("PATCH", false),
            ("CONNECT", false),
            ("get", false), ("LOCK", false),
        ])
    func `repeats only idempotent methods once something was sent`(
        method: String, isIdempotent: Bool
    ) {
        let attempt = RetryPolicy.Attempt(method: method)
        #expect(isRetried(.noResponse, attempt) == isIdempotent)
        #expect(isRetried(.status(503, retryAfter: nil), attempt) == isIdempotent)
        #expect(isRetried(.status(503, retryAfter: "1"), attempt) == isIdempotent)
        for failure in [
            RetryPolicy.FailureReason.notConnected, .status(408, retryAfter: nil),
            .status(421, retryAfter: nil), .status(425, retryAfter: nil),
        ] {
            #expect(isRetried(failure, attempt), "\(failure)")
        }
        let vouched = RetryPolicy.Attempt(method: method, isIdempotent: true)
        #expect(isRetried(.noResponse, vouched))
    }

    @Test(
        arguments: [
            (.status(200, retryAfter: nil), .statusNotListed),
            (.status(404, retryAfter: "1"), .statusNotListed),
            (.status(501, retryAfter: nil), .statusNotListed), (.responseCutOff, .responseStarted),
            (.status(503, retryAfter: "61"), .retryAfterTooLong(61_000)),
            (.status(429, retryAfter: "99999999999999999999"), .retryAfterTooLong(.max)),
        ] as [(RetryPolicy.FailureReason, RetryPolicy.Reason)])
    func `gives up for a reason`(failure: RetryPolicy.FailureReason, reason: RetryPolicy.Reason) {
        #expect(decide(failure, RetryPolicy.Attempt(method: "GET")) == .giveUp(reason))
    }

    @Test func `does not send content again that is not repeatable`() {
        let attempt = RetryPolicy.Attempt(method: "PUT", canRepeatContent: false)
        #expect(decide(.noResponse, attempt) == .giveUp(.contentNotRepeatable))
        #expect(decide(.status(408, retryAfter: nil), attempt) == .giveUp(.contentNotRepeatable))
        // Nothing of it had been delivered yet.
        #expect(isRetried(.notConnected, attempt))
    }

    @Test func `ends after the maximum of attempts or of time`() {
        var attempt = RetryPolicy.Attempt(method: "GET", number: 3)
        #expect(decide(.noResponse, attempt) == .giveUp(.attemptsExhausted))
        #expect(
            decide(.notConnected, RetryPolicy.Attempt(method: "GET"), .never)
                == .giveUp(.attemptsExhausted))
        attempt = RetryPolicy.Attempt(method: "GET", elapsedMilliseconds: 120_001)
        #expect(decide(.noResponse, attempt) == .giveUp(.timeExhausted))
        attempt.elapsedMilliseconds = .max
        #expect(decide(.status(503, retryAfter: "1"), attempt) == .giveUp(.timeExhausted))
    }

    @Test func `waits a random part of a bound that doubles`() {
        let policy = RetryPolicy(maximumAttempts: 100, maximumElapsedMilliseconds: .max)
        #expect(
            (1...9).map(policy.bound(ofDelay:)) == [
                500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
            ])
        #expect(policy.bound(ofDelay: 99) == 30_000)
        for number in [1, 3, 99] {
            var delays: [Int64] = []
            for seed in 0..<1000 {
                let attempt = RetryPolicy.Attempt(method: "GET", number: number)
                guard
                    case .retry(let delay) = decide(
                        .noResponse, attempt, policy, seed: UInt64(seed))
                else {
                    Issue.record("not retried")
                    return
                }
                delays.append(delay)
            }
            // The whole range is used, and a seed always gives the same result.
            let bound = policy.bound(ofDelay: number)
            #expect(delays.allSatisfy { (0...bound).contains($0) })
            let middle = delays.reduce(0, +) / 1000
            #expect((bound * 4 / 10...bound * 6 / 10).contains(middle))
            #expect(Set(delays).count > 300)
            let attempt = RetryPolicy.Attempt(method: "GET", number: number)
            #expect(
                decide(.noResponse, attempt, policy, seed: 7)
                    == .retry(afterMilliseconds: delays[7]))
        }
    }

    @Test func `waits as long as Retry-After requires, and a little more`() {
        for seed in 0..<100 {
            let failure = RetryPolicy.FailureReason.status(503, retryAfter: "2")
            let decision = decide(
                failure, RetryPolicy.Attempt(method: "GET"), seed: UInt64(seed))
            guard case .retry(let delay) = decision else {
                Issue.record("not retried")
                return
            }
            #expect((2000...2500).contains(delay))
        }
    }

    @Test func `uses another connection immediately if that is sufficient`() {
        #expect(
            decide(.status(421, retryAfter: nil), RetryPolicy.Attempt(method: "POST"))
                == .retry(afterMilliseconds: 0))
    }

    @Test(
        arguments: [
            ("0", 0), ("120", 120_000), (" 5 ", 5000), ("Sun, 06 Nov 1994 08:49:47 GMT", 10_000),
            ("Sunday, 06-Nov-94 08:49:38 GMT", 1000), ("Sun Nov  6 08:49:37 1994", 0),
            ("Sun, 06 Nov 1994 08:49:36 GMT", 0), ("", nil), ("soon", nil), ("-1", nil),
            ("1.5", nil), ("1, 2", nil), ("99999999999999999999", .max),
        ] as [(String, Int64?)])
    func `reads Retry-After`(field: String, milliseconds: Int64?) {
        #expect(RetryPolicy.milliseconds(retryAfter: field, now: now) == milliseconds)
    }
}
