import Testing

@testable import Trust

@Suite("Evaluation in AFSecurityPolicy's order")
struct EvaluationTests {
    typealias Question = ScriptedEvidence.Question

    /// A pinset's verdict on evidence, and the queries that it made.
    func evaluate(
        _ pinsets: [Pinset], host: String? = "h",
        answers: [Question: Result<VerifiedChain, ChainError>], others: [VerifiedChain] = []
    ) -> (verdict: TrustVerdict, asked: [Question]) {
        let resolved = ResolvedPinningPolicy(PinningPolicy(pinsets: pinsets)) { pin, _ in
            switch pin {
            case .keyDigest(let digest): PinDigests(key: digest)
            case .certificateFingerprint(let digest): PinDigests(certificate: digest)
            case .certificate(let bytes):
                PinDigests(key: Sample.digest(bytes[0]), certificate: Sample.digest(bytes[0] + 100))
            case .publicKey(let bytes): PinDigests(key: Sample.digest(bytes[0]))
            }
        }
        var evidence = ScriptedEvidence(leaf: Sample.leaf, answers: answers, others: others)
        let verdict = resolved.evaluate(&evidence, host: host, now: 0)
        guard case .trusted(var facts) = verdict else { return (verdict, evidence.asked) }
        #expect(facts.outcomes.count == pinsets.count)
        // `PinsetLifeTests` tests which pins match.
        facts.outcomes = []
        return (.trusted(facts), evidence.asked)
    }

    func refusal(_ verdict: TrustVerdict) -> TrustError.Reason? {
        guard case .refused(let failure) = verdict else { return nil }
        return failure.reason
    }

    let valid = TrustVerdict.trusted(TrustFacts(expires: 1000))
    let unbounded = TrustVerdict.trusted(TrustFacts(expires: nil))

    @Test func `without pinsets the chain must be valid under the roots and name the host`() {
        let good = evaluate([], answers: [.roots(nil, "h"): .success(Sample.chain)])
        #expect(good.verdict == valid)
        let bad = evaluate([], answers: [.roots(nil, "h"): .failure(Sample.expired)])
        #expect(bad.verdict == .refused(TrustError(.chain(Sample.expired))))
    }

    @Test(arguments: PinningMode.allCases)
    func `1: allowing invalid certificates for a validated name without pins is refused`(
        _ mode: PinningMode
    ) {
        let pinset = Pinset(name: "p", mode: mode, allowInvalidCertificates: true)
        let result = evaluate([pinset], answers: [:])
        #expect(
            result.verdict
                == .refused(TrustError(.invalidPolicy, pinsetIndex: 0, pinset: "p")))
        #expect(result.asked.isEmpty)
    }

    @Test func `1: mode none is refused so even with pins, which it does not compare`() {
        let pinset = Pinset(
            name: "p", mode: .none, pins: [Sample.key(1)], allowInvalidCertificates: true)
        #expect(refusal(evaluate([pinset], answers: [:]).verdict) == .invalidPolicy)
    }

    @Test func `1: without a host, or without validating it, the rule does not apply`() {
        var pinset = Pinset(name: "p", mode: .none, allowInvalidCertificates: true)
        #expect(evaluate([pinset], host: nil, answers: [:]).verdict == unbounded)
        pinset.validatesDomainName = false
        #expect(evaluate([pinset], answers: [:]).verdict == unbounded)
        pinset.mode = .publicKey
        #expect(refusal(evaluate([pinset], answers: [:]).verdict) == .pinsetWithoutPins)
    }

    @Test func `2: the host is part of the chain check only when validated and given`() {
        var pinset = Pinset(name: "p")
        let success: Result<VerifiedChain, ChainError> = .success(Sample.chain)
        #expect(evaluate([pinset], answers: [.roots(0, "h"): success]).asked == [.roots(0, "h")])
        #expect(evaluate([pinset], host: nil, answers: [:]).asked == [.roots(0, nil)])
        pinset.validatesDomainName = false
        #expect(evaluate([pinset], answers: [.roots(0, nil): success]).verdict == valid)
        pinset.mode = .certificate
        pinset.pins = [Sample.certificate(1)]
        let both = evaluate([pinset], answers: [.roots(0, nil): success, .pins(0, nil): success])
        #expect(both.asked == [.roots(0, nil), .pins(0, nil)])
        #expect(both.verdict == valid)
    }

    @Test func `3: mode none passes exactly when the chain is valid, whatever pins there are`() {
        let pinset = Pinset(name: "p", mode: .none, pins: [Sample.other])
        let success = evaluate([pinset], answers: [.roots(0, "h"): .success(Sample.chain)])
        #expect(success.verdict == valid)
        let failure = evaluate([pinset], answers: [.roots(0, "h"): .failure(Sample.untrusted)])
        #expect(
            failure.verdict
                == .refused(
                    TrustError(.chain(Sample.untrusted), pinsetIndex: 0, pinset: "p")))
    }

    @Test func `5: a key is looked for on every valid chain, and the one that has it counts`() {
        let other = VerifiedChain(
            certificates: [Sample.leaf, Sample.intermediate, Sample.identity(7, "CN=other root")],
            expires: 500)
        let answers: [Question: Result<VerifiedChain, ChainError>] = [
            .roots(0, "h"): .success(Sample.chain), .roots(1, "h"): .success(Sample.chain),
        ]
        let first = Pinset(name: "p", mode: .publicKey, pins: [Sample.key(3)])
        let second = Pinset(name: "q", mode: .publicKey, pins: [Sample.other, Sample.key(7)])
        #expect(evaluate([first], answers: answers, others: [other]).verdict == valid)
        // Each pinset with a different chain; trust ends with the one that expires first.
        #expect(
            evaluate([first, second], answers: answers, others: [other]).verdict
                == .trusted(TrustFacts(expires: 500)))
        let wrong = Pinset(name: "p", mode: .publicKey, pins: [Sample.other])
        guard
            case .noPinMatches(_, let chain)? = refusal(
                evaluate([wrong], answers: answers, others: [other]).verdict)
        else {
            Issue.record("not refused for its pins")
            return
        }
        #expect(chain.map(\.subject) == ["CN=leaf", "CN=intermediate", "CN=root"])
    }

    @Test(arguments: PinningMode.allCases)
    func `4: a pinned chain must first be valid under the roots`(_ mode: PinningMode) {
        let pinset = Pinset(
            name: "p", mode: mode, pins: [Sample.certificate(1)])
        let result = evaluate(
            [pinset],
            answers: [
                .roots(0, "h"): .failure(Sample.untrusted), .pins(0, "h"): .success(Sample.chain),
            ])
        #expect(refusal(result.verdict) == .chain(Sample.untrusted))
        #expect(result.asked == [.roots(0, "h")])
    }

    @Test func `a pinned mode without pins refuses a valid chain`() {
        for mode in [PinningMode.publicKey, .certificate] {
            let result = evaluate(
                [Pinset(name: "p", mode: mode)],
                answers: [.roots(0, "h"): .success(Sample.chain)])
            #expect(refusal(result.verdict) == .pinsetWithoutPins)
        }
    }

    @Test(arguments: 1...3)
    func `5: a key anywhere on the verified chain may be the pinned one`(_ member: Int) {
        for pin in [
            Sample.key(UInt8(member)), Sample.certificate(UInt8(member)),
            .certificate([UInt8(member)]), .publicKey([UInt8(member)]),
        ] {
            let pinset = Pinset(name: "p", mode: .publicKey, pins: [Sample.other, pin])
            let result = evaluate([pinset], answers: [.roots(0, "h"): .success(Sample.chain)])
            #expect(result.verdict == valid)
        }
    }

    @Test
    func `5: a renewed certificate with the same key passes a key pin that came from a file`() {
        var renewed = Sample.chain
        renewed.certificates[0].fingerprint = Sample.digest(77)
        let pinset = Pinset(name: "p", mode: .publicKey, pins: [.certificate([1])])
        let result = evaluate([pinset], answers: [.roots(0, "h"): .success(renewed)])
        #expect(result.verdict == valid)
    }

    @Test func `5: without a pinned key the refusal lists both sides, ready to paste`() {
        let pinset = Pinset(
            name: "payments", mode: .publicKey, pins: [Sample.other, Sample.otherCertificate])
        let result = evaluate([pinset], answers: [.roots(0, "h"): .success(Sample.chain)])
        let expected = TrustError.Reason.noPinMatches(
            expected: [Sample.digest(9).keyPinText, Sample.digest(109).fingerprintText],
            chain: [
                ChainPin(pin: Sample.digest(1).keyPinText, subject: "CN=leaf"),
                ChainPin(pin: Sample.digest(2).keyPinText, subject: "CN=intermediate"),
                ChainPin(pin: Sample.digest(3).keyPinText, subject: "CN=root"),
            ])
        #expect(refusal(result.verdict) == expected)
    }

    @Test func `5: a pasted chain pin passes`() throws {
        let pinset = Pinset(name: "p", mode: .publicKey, pins: [Sample.other])
        let answers: [Question: Result<VerifiedChain, ChainError>] = [
            .roots(0, "h"): .success(Sample.chain)
        ]
        guard
            case .noPinMatches(_, let chain) = refusal(evaluate([pinset], answers: answers).verdict)
        else {
            Issue.record("expected a refusal")
            return
        }
        for member in chain {
            guard case .literal(let pins) = try Pin.parse(member.pin) else {
                Issue.record("expected a pin, not a path")
                return
            }
            let pasted = Pinset(name: "p", mode: .publicKey, pins: pins)
            #expect(evaluate([pasted], answers: answers).verdict == valid)
        }
    }

    @Test func `5: with invalid certificates allowed only the leaf's key may match`() {
        var pinset = Pinset(
            name: "p", mode: .publicKey, pins: [Sample.key(1)], allowInvalidCertificates: true)
        let leaf = evaluate([pinset], answers: [:])
        #expect(leaf.verdict == unbounded)
        #expect(leaf.asked.isEmpty)
        pinset.pins = [Sample.key(2), Sample.key(3)]
        let above = evaluate([pinset], answers: [.roots(0, "h"): .success(Sample.chain)])
        #expect(
            refusal(above.verdict)
                == .noPinMatches(
                    expected: [Sample.digest(2).keyPinText, Sample.digest(3).keyPinText],
                    chain: [ChainPin(pin: Sample.digest(1).keyPinText, subject: "CN=leaf")]))
        pinset.pins = [Sample.certificate(1)]
        #expect(evaluate([pinset], answers: [:]).verdict == unbounded)
    }

    @Test(arguments: 1...3)
    func `5: certificates are evaluated again with the pins as the only anchors`(_ member: Int) {
        for pin in [Sample.certificate(UInt8(member)), .certificate([UInt8(member)])] {
            let pinset = Pinset(name: "p", mode: .certificate, pins: [pin])
            var pinned = Sample.chain
            pinned.certificates = Array(pinned.certificates.prefix(member))
            pinned.expires = 900
            let result = evaluate(
                [pinset],
                answers: [.roots(0, "h"): .success(Sample.chain), .pins(0, "h"): .success(pinned)])
            #expect(result.verdict == .trusted(TrustFacts(expires: 900)))
            #expect(result.asked == [.roots(0, "h"), .pins(0, "h")])
        }
    }

    @Test func `5: certificates are evaluated again also when invalid ones are allowed`() {
        let pinset = Pinset(
            name: "p", mode: .certificate, pins: [Sample.certificate(1)],
            allowInvalidCertificates: true)
        let good = evaluate([pinset], answers: [.pins(0, "h"): .success(Sample.chain)])
        #expect(good.verdict == valid)
        #expect(good.asked == [.pins(0, "h")])
        let expired = evaluate([pinset], answers: [.pins(0, "h"): .failure(Sample.expired)])
        #expect(refusal(expired.verdict) == .chain(Sample.expired))
    }

    @Test(
        arguments: [
            ChainError.selfSigned(subject: "a"), .untrustedRoot(subject: "a"),
            .incompleteChain(subject: "a", issuer: "b"),
        ])
    func `5: a chain that leads to none of the pinned certificates matches no pin`(
        _ failure: ChainError
    ) {
        var pinset = Pinset(name: "p", mode: .certificate, pins: [Sample.otherCertificate])
        let result = evaluate(
            [pinset],
            answers: [.roots(0, "h"): .success(Sample.chain), .pins(0, "h"): .failure(failure)])
        #expect(
            refusal(result.verdict)
                == .noPinMatches(
                    expected: [Sample.digest(109).fingerprintText],
                    chain: Sample.chain.certificates.map {
                        ChainPin(pin: $0.fingerprint.fingerprintText, subject: $0.subject)
                    }))
        pinset.allowInvalidCertificates = true
        let allowing = evaluate([pinset], answers: [.pins(0, "h"): .failure(failure)])
        guard case .noPinMatches(_, let chain) = refusal(allowing.verdict) else {
            Issue.record("expected that no pin matches")
            return
        }
        #expect(chain.map(\.subject) == ["CN=leaf"])
    }

    @Test func `5: a chain that does not hold the pin byte for byte matches no pin`() {
        let pinset = Pinset(name: "p", mode: .certificate, pins: [.certificate([9])])
        let success: Result<VerifiedChain, ChainError> = .success(Sample.chain)
        let result = evaluate([pinset], answers: [.roots(0, "h"): success, .pins(0, "h"): success])
        guard case .noPinMatches = refusal(result.verdict) else {
            Issue.record("expected that no pin matches")
            return
        }
    }

    @Test func `a key is not enough in certificate mode`() {
        let pinset = Pinset(name: "p", mode: .certificate, pins: [Sample.key(1)])
        let success: Result<VerifiedChain, ChainError> = .success(Sample.chain)
        let result = evaluate([pinset], answers: [.roots(0, "h"): success, .pins(0, "h"): success])
        guard case .noPinMatches = refusal(result.verdict) else {
            Issue.record("expected that no pin matches")
            return
        }
    }
}
