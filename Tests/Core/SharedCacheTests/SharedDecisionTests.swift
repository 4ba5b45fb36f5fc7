import CachePolicy
import Testing

@testable import SharedCache

@Suite("What to do with a request for which the own tiers have nothing")
struct SharedDecisionTests {
    private let leases: [SharedReply.Lease] = [.notAsked, .taken, .another]

    private func value(staleSince: Int64? = nil) throws -> SharedValue {
        let keyring = try Sample.keyring(1)
        let draft = Sample.draft(staleSince: staleSince)
        let record = [UInt8]().withUnsafeBytes {
            draft.record(body: $0, under: Sample.name, by: keyring)
        }
        return try Sample.value(try #require(record), by: keyring)
    }

    private func circumstances(
        trust: UInt64 = Sample.trust, isFollowing: Bool = true, waited: Int64 = 0,
        patience: Int64 = 1000, mayWait: Bool = true
    ) -> SharedCircumstances {
        SharedCircumstances(
            trust: trust, isFollowing: isFollowing, waited: waited, patience: patience,
            mayWait: mayWait)
    }

    private func found(
        _ value: SharedValue, _ verdict: GenerationVerdict = .current
    ) -> SharedReply.Found {
        .value(value, instance: value.instance, verdict)
    }

    @Test func `is to serve what is current, whoever holds the lease`() throws {
        let value = try value()
        for lease in leases {
            for isNotStored in [false, true] {
                let reply = SharedReply(
                    found: found(value), lease: lease, isNotStored: isNotStored)
                #expect(SharedDecision(reply, circumstances()) == .serve(staleSince: nil))
            }
        }
    }

    @Test func `is to serve what was purged softly as stale, since the first time`() throws {
        let cases: [(Int64?, GenerationVerdict, Int64?)] = [
            (nil, .current, nil), (5, .current, 5), (nil, .stale(since: 7), 7),
            (5, .stale(since: 7), 5), (9, .stale(since: 7), 7),
        ]
        for (own, verdict, since) in cases {
            let reply = SharedReply(found: found(try value(staleSince: own), verdict))
            #expect(SharedDecision(reply, circumstances()) == .serve(staleSince: since))
        }
    }

    @Test func `is to have confirmed what may have been purged`() throws {
        let value = try value()
        let errors: [GenerationError] = [
            .missing, .tooLong, .otherEpoch, .olderThanRecord, .unreadable(.wrongCode),
        ]
        for error in errors {
            for isFollowing in [true, false] {
                let reply = SharedReply(found: found(value, .unknown(error)))
                #expect(
                    SharedDecision(reply, circumstances(isFollowing: isFollowing))
                        == .revalidate(.unknownGeneration(error)))
            }
        }
        for verdict: GenerationVerdict in [.current, .stale(since: 1)] {
            let reply = SharedReply(found: found(value, verdict))
            #expect(
                SharedDecision(reply, circumstances(isFollowing: false))
                    == .revalidate(.behind))
        }
    }

    /// All that leads to a fetch, and why.
    private func misses() throws -> [(SharedReply.Found, SharedMissReason)] {
        let value = try value()
        return [
            (.nothing, .nothing), (.refused(.wrongCode), .refused(.wrongCode)),
            (found(value, .gone), .purged),
            (.value(value, instance: nil, .current), .otherInstance),
            (.value(value, instance: Sample.token(2), .current), .otherInstance),
        ]
    }

    @Test func `is to fetch what is missing, as the leader, after waiting, or alone`() throws {
        for (found, reason) in try misses() {
            func decide(
                _ lease: SharedReply.Lease, isNotStored: Bool = false,
                _ circumstances: SharedCircumstances
            ) -> SharedDecision {
                SharedDecision(
                    SharedReply(found: found, lease: lease, isNotStored: isNotStored),
                    circumstances)
            }
            #expect(decide(.notAsked, circumstances()) == .miss(reason))
            #expect(decide(.taken, circumstances()) == .lead)
            #expect(decide(.taken, circumstances(isFollowing: false)) == .miss(reason))
            #expect(decide(.another, circumstances()) == .wait(5))
            #expect(decide(.another, circumstances(mayWait: false)) == .miss(reason))
            #expect(
                decide(.another, circumstances(waited: 1000)) == .miss(.waitedTooLong))
            for lease in leases {
                #expect(
                    decide(lease, isNotStored: true, circumstances()) == .miss(.hitForMiss))
            }
        }
    }

    @Test func `is never to serve what was obtained under other rules`() throws {
        let value = try value()
        for verdict: GenerationVerdict in [
            .current, .stale(since: 1), .unknown(.missing), .gone,
        ] {
            let reply = SharedReply(found: found(value, verdict))
            #expect(
                SharedDecision(reply, circumstances(trust: Sample.trust ^ 1))
                    == .miss(.otherTrust))
        }
    }

    @Test func `is to fetch alone if the level does not answer`() {
        for lease in leases {
            let away = SharedReply(found: .unavailable(isSlow: false), lease: lease)
            #expect(SharedDecision(away, circumstances()) == .miss(.away))
            let slow = SharedReply(found: .unavailable(isSlow: true), lease: lease)
            #expect(SharedDecision(slow, circumstances()) == .miss(.slow))
        }
    }

    @Test func `is to wait for longer each time, and never for longer than it may`() {
        var waited: Int64 = 0
        var pauses: [Int64] = []
        let reply = SharedReply(found: .nothing, lease: .another)
        while case .wait(let pause) = SharedDecision(
            reply, circumstances(waited: waited, patience: 3000))
        {
            #expect(pause > 0)
            pauses.append(pause)
            waited += pause
        }
        #expect(waited == 3000)
        #expect(pauses.dropLast() == pauses.dropLast().sorted()[...])
        #expect(pauses.max() == 100)
        #expect(pauses.count < 100)
    }
}

@Suite("The engine's clock")
struct EngineClockTests {
    @Test func `is not known before it was asked`() {
        let clock = EngineClock()
        #expect(!clock.isKnown)
        #expect(clock.engineSeconds(0) == nil)
        #expect(clock.toOwn(Sample.times) == nil)
    }

    @Test(arguments: [-3_600_000, -1499, -500, -499, 0, 499, 500, 3_600_000] as [Int64])
    func `converts times there and back`(offset: Int64) throws {
        var clock = EngineClock()
        clock.measured(asked: 10_000_000, answered: 10_000_004, engine: 10_000_002 + offset)
        let seconds = Int64((Double(offset) / 1000).rounded(.toNearestOrAwayFromZero))
        #expect(clock.engineSeconds(10_000) == 10_000 + seconds)
        #expect(clock.ownSeconds(10_000 + seconds) == 10_000)
        let times = StoredTimes(requestTime: 9000, responseTime: 9001, initialAge: 7)
        let moved = try #require(clock.toEngine(times))
        #expect(moved.requestTime == 9000 + seconds)
        #expect(moved.initialAge == 7)
        #expect(clock.toOwn(moved) == times)
    }

    @Test func `is measured by the shortest question`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 1000, engine: 10_900)
        #expect(clock.engineSeconds(0) == 10)
        clock.measured(asked: 2000, answered: 2002, engine: 12_601)
        #expect(clock.engineSeconds(0) == 11)
        clock.measured(asked: 3000, answered: 4000, engine: 13_900)
        #expect(clock.engineSeconds(0) == 11)
    }

    @Test func `is measured anew if a clock was set, and after a while`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 2, engine: 1)
        #expect(clock.engineSeconds(0) == 0)
        clock.measured(asked: 100, answered: 200, engine: 5150)
        #expect(clock.engineSeconds(0) == 5)
        let later = EngineClock.lifetimeMilliseconds + 200
        clock.measured(asked: later, answered: later + 1900, engine: later + 4000 + 950)
        #expect(clock.engineSeconds(0) == 4)
    }

    @Test func `is not measured by answers that took too long or cannot be`() {
        var clock = EngineClock()
        clock.measured(asked: 0, answered: 2001, engine: 1)
        clock.measured(asked: 10, answered: 9, engine: 1)
        clock.measured(asked: 0, answered: 1, engine: -1)
        clock.measured(asked: 0, answered: 1, engine: .max)
        #expect(!clock.isKnown)
    }
}
