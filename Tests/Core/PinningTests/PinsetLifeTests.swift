import Testing

@testable import Trust

/// A pinset that only reports, and one that has expired.
@Suite("Pinsets over their life")
struct PinsetLifeTests {
    typealias Question = ScriptedEvidence.Question
    typealias Answers = [Question: Result<VerifiedChain, ChainError>]

    private func evaluate(
        _ pinsets: [Pinset], _ answers: Answers, now: Int64 = 100, host: String? = "h"
    ) -> TrustVerdict {
        let resolved = ResolvedPinningPolicy(PinningPolicy(pinsets: pinsets)) { pin, _ in
            switch pin {
            case .keyDigest(let digest): PinDigests(key: digest)
            case .certificateFingerprint(let digest): PinDigests(certificate: digest)
            case .certificate, .publicKey: PinDigests()
            }
        }
        var evidence = ScriptedEvidence(leaf: Sample.leaf, answers: answers)
        return resolved.evaluate(&evidence, host: host, now: now)
    }

    private func pinset(_ pins: [Pin], _ change: (inout Pinset) -> Void = { _ in }) -> Pinset {
        var pinset = Pinset(name: "p", mode: .publicKey, pins: pins)
        change(&pinset)
        return pinset
    }

    private let valid: Answers = [.roots(0, "h"): .success(Sample.chain)]

    private func facts(_ verdict: TrustVerdict) -> TrustFacts? {
        if case .trusted(let facts) = verdict { facts } else { nil }
    }

    private func refusal(_ verdict: TrustVerdict) -> TrustError.Reason? {
        if case .refused(let failure) = verdict { failure.reason } else { nil }
    }

    private func reported(_ verdict: TrustVerdict) -> TrustError.Reason? {
        guard case .reported(let failure)? = facts(verdict)?.outcomes.first else { return nil }
        return failure.reason
    }

    private func isMismatch(_ reason: TrustError.Reason?) -> Bool {
        if case .noPinMatches = reason { true } else { false }
    }

    // MARK: Reporting only

    @Test func `a mismatch is reported, named, and passes`() {
        let verdict = evaluate([pinset([Sample.other]) { $0.isEnforced = false }], valid)
        #expect(isMismatch(reported(verdict)))
        #expect(facts(verdict)?.isReported == true)
        #expect(facts(verdict)?.expires == 1000)
        guard case .reported(let failure)? = facts(verdict)?.outcomes.first else { return }
        #expect(failure.pinset == "p")
        #expect(failure.pinsetIndex == 0)
    }

    @Test func `a match passes and nothing is reported`() {
        let verdict = evaluate([pinset([Sample.key(2)]) { $0.isEnforced = false }], valid)
        #expect(facts(verdict)?.outcomes == [.passed(PinMatches([0]))])
        #expect(facts(verdict)?.isReported == false)
    }

    /// Every way in which a chain can be bad, with every way of loosening the pinset.
    @Test(arguments: PinningMode.allCases, [true, false])
    func `a server that would fail without the pinset fails with one that reports`(
        _ mode: PinningMode, _ allowsInvalid: Bool
    ) {
        let pins = mode == .certificate ? [Sample.otherCertificate] : [Sample.other]
        for validates in [true, false] where mode != .none {
            for failure in [Sample.untrusted, Sample.expired] {
                var tested = Pinset(
                    name: "p", mode: mode, pins: pins, allowInvalidCertificates: allowsInvalid,
                    validatesDomainName: validates)
                tested.isEnforced = false
                var answers: Answers = [
                    .roots(0, "h"): .failure(failure), .roots(0, nil): .failure(failure),
                    .pins(0, "h"): .failure(Sample.untrusted),
                    .pins(0, nil): .failure(Sample.untrusted),
                ]
                #expect(refusal(evaluate([tested], answers)) == .chain(failure))
                // Valid, but for another host.
                let mismatch = ChainError.hostMismatch(host: "h", names: [])
                answers[.roots(0, "h")] = .failure(mismatch)
                answers[.roots(0, nil)] = .success(Sample.chain)
                #expect(refusal(evaluate([tested], answers)) == .chain(mismatch))
                answers[.roots(0, "h")] = .success(Sample.chain)
                #expect(isMismatch(reported(evaluate([tested], answers))))
            }
        }
    }

    @Test func `a pinned certificate that no chain under it is valid for is reported too`() {
        var tested = Pinset(name: "p", mode: .certificate, pins: [Sample.certificate(1)])
        tested.isEnforced = false
        var answers = valid
        answers[.pins(0, "h")] = .failure(Sample.expired)
        #expect(reported(evaluate([tested], answers)) == .chain(Sample.expired))
    }

    @Test func `a pinset that no server can pass refuses though it only reports`() {
        let contradictory = pinset([]) {
            $0.isEnforced = false
            $0.allowInvalidCertificates = true
        }
        #expect(refusal(evaluate([contradictory], valid)) == .invalidPolicy)
        #expect(
            refusal(evaluate([pinset([]) { $0.isEnforced = false }], valid)) == .pinsetWithoutPins)
    }

    @Test func `an enforced pinset beside it is as strict as without it`() {
        let reporting = pinset([Sample.other]) { $0.isEnforced = false }
        let enforced = pinset([Sample.other])
        var answers = valid
        answers[.roots(1, "h")] = .success(Sample.chain)
        #expect(isMismatch(refusal(evaluate([reporting, enforced], answers))))
        #expect(isMismatch(refusal(evaluate([enforced, reporting], answers))))
        #expect(
            facts(evaluate([reporting, pinset([Sample.key(1)])], answers))?.outcomes.last
                == .passed(PinMatches([0])))
    }

    // MARK: Expiry

    @Test(
        arguments: [
            (true, .refuse, 99, true, false), (true, .refuse, 100, true, false),
            (true, .refuse, 101, false, false), (true, .report, 99, false, true),
            (true, .report, 100, false, true), (true, .report, 101, false, false),
            (false, .refuse, 99, false, true), (false, .report, 99, false, true),
            (false, .refuse, 101, false, true),
        ] as [(Bool, PinsetExpiry, Int64, Bool, Bool)])
    func `what a pinset does at second 100, by its times`(
        isEnforced: Bool, after: PinsetExpiry, expires: Int64, refuses: Bool, reports: Bool
    ) {
        func tested(_ pins: [Pin]) -> Pinset {
            pinset(pins) {
                $0.isEnforced = isEnforced
                $0.expires = expires
                $0.afterExpiry = after
            }
        }
        let right = evaluate([tested([Sample.key(3)])], valid)
        let wrong = evaluate([tested([Sample.other])], valid)
        if refuses {
            #expect(refusal(right) == .pinsetExpired(at: expires))
            #expect(refusal(wrong) == .pinsetExpired(at: expires))
            return
        }
        #expect(facts(right)?.outcomes == [.passed(PinMatches([0]))])
        #expect(isMismatch(reports ? reported(wrong) : refusal(wrong)))
    }

    @Test func `an exemption ends as well`() {
        var exempt = Pinset(
            name: "p", allowInvalidCertificates: true, validatesDomainName: false)
        exempt.expires = 100
        #expect(facts(evaluate([exempt], [:], now: 99))?.expires == 100)
        #expect(refusal(evaluate([exempt], [:], now: 100)) == .pinsetExpired(at: 100))
    }

    @Test func `a result holds until the chain or a pinset that refuses then expires`() {
        func held(_ expires: Int64?, _ change: (inout Pinset) -> Void = { _ in }) -> TrustFacts? {
            facts(
                evaluate(
                    [
                        pinset([Sample.key(1)]) {
                            $0.expires = expires
                            change(&$0)
                        }
                    ], valid))
        }
        #expect(held(nil)?.expires == 1000)
        #expect(held(900)?.expires == 900)
        #expect(held(900)?.chainExpires == 1000)
        #expect(held(1100)?.expires == 1000)
        #expect(held(900) { $0.afterExpiry = .report }?.expires == 1000)
        #expect(held(900) { $0.isEnforced = false }?.expires == 1000)
    }

    @Test func `the refusal has the time when the pinset expired`() {
        let failure = TrustError(.pinsetExpired(at: 86_400), pinsetIndex: 0, pinset: "p")
        #expect("\(failure)" == "pinset p: the pinset expired at 1970-01-02T00:00:00Z")
        #expect(failure.token == "pinset-expired")
    }

    // MARK: Matches

    @Test func `every pin that the chain has is reported, and no other`() {
        let pins = [Sample.other, Sample.key(3), Sample.key(9), Sample.key(1)]
        #expect(facts(evaluate([pinset(pins)], valid))?.outcomes == [.passed(PinMatches([1, 3]))])
        let certificates = Pinset(
            name: "p", mode: .certificate, pins: [Sample.otherCertificate, Sample.certificate(2)])
        var answers = valid
        answers[.pins(0, "h")] = .success(Sample.chain)
        #expect(
            facts(evaluate([certificates], answers))?.outcomes == [.passed(PinMatches([1]))])
    }

    @Test func `pins beyond those with their own counters count as one`() {
        #expect(PinMatches([0, 14]).indexes == [0, 14])
        #expect(PinMatches([15]).indexes == [15])
        #expect(PinMatches([3, 15, 16, 999]).indexes == [3, 15])
        #expect(PinMatches([]).isEmpty)
        #expect(!PinMatches([999]).isEmpty)
    }
}
