import HTTPCore
import Testing

@testable import PinfoldResolver

@Suite("What a lookup came to")
struct LookupOutcomeTests {
    private let four = IPAddress.v4(0x0102_0304)
    private let six = IPAddress.v6(0x2001_0db8_0000_0000, 1)

    private var options: ResolverOptions {
        var options = ResolverOptions()
        options.minimumTTLSeconds = 5
        options.maximumTTLSeconds = 1000
        options.maximumNegativeTTLSeconds = 100
        options.defaultNegativeTTLSeconds = 10
        options.failureTTLSeconds = 1
        options.halfAnswerTTLSeconds = 30
        return options
    }

    private func combine(_ v4: FamilyOutcome, _ v6: FamilyOutcome) -> LookupOutcome {
        LookupOutcome(v4: v4, v6: v6, options: options)
    }

    @Test func `both families' addresses make one answer, IPv6 first, with the lesser TTL`() {
        let outcome = combine(.addresses([four], ttlSeconds: 50), .addresses([six], ttlSeconds: 90))
        #expect(outcome.result == .success([six, four]))
        #expect(outcome.ttlSeconds == 50)
    }

    @Test func `one family is enough, and a failure of the other makes it short-lived`() {
        let there = FamilyOutcome.addresses([four], ttlSeconds: 90)
        for (other, ttl): (FamilyOutcome, Int64) in [
            (.noData(ttlSeconds: 7), 90), (.noSuchName(ttlSeconds: nil), 90),
            (.failed(.timeout), 30),
        ] {
            #expect(combine(there, other).result == .success([four]))
            #expect(combine(there, other).ttlSeconds == ttl)
            #expect(combine(other, there).result == .success([four]))
            #expect(combine(other, there).ttlSeconds == ttl)
        }
        let short = FamilyOutcome.addresses([four], ttlSeconds: 20)
        #expect(combine(short, .failed(.timeout)).ttlSeconds == 20)
    }

    @Test func `TTLs are kept between the bounds`() {
        for (ttl, expected): (Int64, Int64) in [
            (0, 5), (4, 5), (5, 5), (6, 6), (1000, 1000), (1001, 1000),
        ] {
            let outcome = combine(.addresses([four], ttlSeconds: ttl), .noData(ttlSeconds: nil))
            #expect(outcome.ttlSeconds == expected)
        }
    }

    @Test func `no such name from either question is the answer; no data must come from both`() {
        for other: FamilyOutcome in [.noData(ttlSeconds: 3), .failed(.timeout)] {
            let outcome = combine(.noSuchName(ttlSeconds: 40), other)
            #expect(outcome.result == .failure(.nxdomain))
            #expect(outcome.ttlSeconds == 40)
            #expect(combine(other, .noSuchName(ttlSeconds: 40)) == outcome)
        }
        let both = combine(.noSuchName(ttlSeconds: 40), .noSuchName(ttlSeconds: 30))
        #expect(both.result == .failure(.nxdomain))
        #expect(both.ttlSeconds == 30)
        let none = combine(.noData(ttlSeconds: 40), .noData(ttlSeconds: nil))
        #expect(none.result == .failure(.noData))
        #expect(none.ttlSeconds == 40)
    }

    @Test func `negative answers live for a default without a SOA, and never beyond their bound`() {
        let absent = FamilyOutcome.noData(ttlSeconds: nil)
        #expect(combine(absent, absent).ttlSeconds == 10)
        for (ttl, expected): (Int64, Int64) in [(0, 0), (100, 100), (101, 100)] {
            let outcome = combine(.noData(ttlSeconds: ttl), .noData(ttlSeconds: ttl))
            #expect(outcome.ttlSeconds == expected)
        }
    }

    @Test func `a failure is reported over no data, for a moment`() {
        for (v4, v6, expected): (FamilyOutcome, FamilyOutcome, ResolveError) in [
            (.failed(.timeout), .noData(ttlSeconds: 9), .timeout),
            (.noData(ttlSeconds: 9), .failed(.refused), .refused),
            (.failed(.serverFailure), .failed(.timeout), .serverFailure),
        ] {
            #expect(combine(v4, v6).result == .failure(expected))
            #expect(combine(v4, v6).ttlSeconds == 1)
        }
    }

    @Test func `a part of an answer without addresses is ignored`() {
        let part = LookupOutcome(part: .addresses([six], ttlSeconds: 900), options: options)
        #expect(part?.result == .success([six]))
        #expect(part?.ttlSeconds == 30)
        for outcome: FamilyOutcome in [
            .noData(ttlSeconds: 1), .noSuchName(ttlSeconds: 1), .failed(.timeout),
        ] {
            #expect(LookupOutcome(part: outcome, options: options) == nil)
        }
    }

    @Test func `times in milliseconds do not overflow whatever the bounds are`() {
        #expect(LookupOutcome.milliseconds(.max) == Int64(Int32.max) * 1000)
        #expect(LookupOutcome.milliseconds(-1) == 0)
        #expect(LookupOutcome.milliseconds(3) == 3000)
    }
}
