import Testing

@testable import Trust

@Suite("Several pinsets")
struct SeveralPinsetsTests {
    let first = Pinset(name: "first", mode: .publicKey, pins: [Sample.key(1)])
    let second = Pinset(name: "second", mode: .publicKey, pins: [Sample.key(3)])
    let wrong = Pinset(name: "wrong", mode: .publicKey, pins: [Sample.other])

    func verdict(_ pinsets: [Pinset], expires: [Int64]) -> TrustVerdict {
        var answers: [ScriptedEvidence.Question: Result<VerifiedChain, ChainError>] = [:]
        for (index, expires) in expires.enumerated() {
            answers[.roots(index, "h")] = .success(
                VerifiedChain(certificates: Sample.chain.certificates, expires: expires))
        }
        let resolved = ResolvedPinningPolicy(PinningPolicy(pinsets: pinsets)) { pin, _ in
            guard case .keyDigest(let digest) = pin else { return PinDigests() }
            return PinDigests(key: digest)
        }
        var evidence = ScriptedEvidence(leaf: Sample.leaf, answers: answers)
        return resolved.evaluate(&evidence, host: "h", now: 0)
    }

    @Test func `all must pass, and the earliest expiry counts`() {
        let outcomes = [PinsetOutcome.passed(PinMatches([0])), .passed(PinMatches([0]))]
        for (expires, earliest) in [([500, 400], 400), ([300, 400], 300)] as [([Int64], Int64)] {
            #expect(
                verdict([first, second], expires: expires)
                    == .trusted(TrustFacts(expires: earliest, outcomes: outcomes)))
        }
    }

    @Test(arguments: 0...2)
    func `the first that refuses is named with its place`(_ index: Int) {
        var pinsets = [first, second]
        pinsets.insert(wrong, at: index)
        guard case .refused(let failure) = verdict(pinsets, expires: [1, 1, 1]) else {
            Issue.record("expected a refusal")
            return
        }
        #expect(failure.pinsetIndex == index)
        #expect(failure.pinset == "wrong")
        #expect(failure.token == "no-pin-matches")
        #expect(
            failure.description.hasPrefix("pinset wrong: no pin matches; expected one of sha256/"))
    }
}

@Suite("Errors of pinsets")
struct PinsetErrorTests {
    @Test func `a pinset that no server can pass is an error with the reason`() {
        #expect(Pinset(name: "p").configurationError == nil)
        #expect(Pinset(name: "p", mode: .publicKey).configurationError == .pinsetWithoutPins)
        #expect(Pinset(name: "p", mode: .certificate).configurationError == .pinsetWithoutPins)
        #expect(
            Pinset(name: "p", mode: .none, allowInvalidCertificates: true).configurationError
                == .hostNameWithoutPins)
        #expect(
            Pinset(
                name: "p", mode: .none, allowInvalidCertificates: true, validatesDomainName: false
            ).configurationError == nil)
        for pin in [Sample.key(1), .publicKey([1])] {
            let pins = [Sample.certificate(1), pin]
            #expect(
                Pinset(name: "p", mode: .certificate, pins: pins).configurationError
                    == .keyPinInCertificateMode)
            #expect(Pinset(name: "p", mode: .publicKey, pins: pins).configurationError == nil)
        }
        #expect(
            Pinset(name: "p", mode: .certificate, pins: [Sample.certificate(1), .certificate([1])])
                .configurationError == nil)
        #expect(Set(PinsetError.allCases.map(\.problem)).count == PinsetError.allCases.count)
    }

    @Test func `every reason has its own token and a sentence`() {
        let chain: [ChainError] = [
            .hostMismatch(host: "h", names: [.dns("a"), .dns("b")]),
            .expired(subject: "s", notAfter: 0),
            .notYetValid(subject: "s", notBefore: 0), .selfSigned(subject: "s"),
            .untrustedRoot(subject: "s"), .incompleteChain(subject: "s", issuer: "i"),
            .badSignature(subject: "s"), .wrongPurpose(subject: "s"),
            .weakCryptography(subject: "s"),
            .constraintViolated(subject: "s"), .malformed(position: 1), .noCertificate,
            .other(code: 1, text: "t"),
        ]
        let reasons =
            chain.map { TrustError.Reason.chain($0) } + [
                .noPinMatches(expected: [], chain: []), .pinsetWithoutPins, .invalidPolicy,
                .pinsetExpired(at: 0),
            ]
        let failures = reasons.map { TrustError($0) }
        #expect(Set(failures.map(\.token)).count == reasons.count)
        #expect(Set(failures.map(\.description)).count == reasons.count)
        #expect(
            failures[0].description == "the certificate is for a, b, not for h")
        #expect(
            TrustError(.chain(.hostMismatch(host: "h", names: []))).description
                == "the certificate is for no host, not for h")
        #expect(
            TrustError(.chain(.hostMismatch(host: "127.0.0.1", names: [.dns("127.0.0.1")])))
                .description
                == "the certificate is for the DNS name 127.0.0.1, not for the address 127.0.0.1")
        #expect(
            TrustError(
                .chain(
                    .hostMismatch(
                        host: "::1", names: [.dns("a"), .dns("::1"), .address("1.2.3.4")]))
            ).description
                == "the certificate is for a, the DNS name ::1, 1.2.3.4, not for the address ::1")
        #expect(failures[1].description == "the certificate of s expired at 1970-01-01T00:00:00Z")
    }
}
