import PinfoldTLS
import Testing
import Trust

@Suite("A verdict without a connection")
struct JudgementTests {
    private static let now = PKI.now

    private func token(_ verdict: TrustVerdict) -> String? {
        guard case .refused(let failure) = verdict else { return nil }
        return failure.token
    }

    private func judge(
        _ chain: TestCertificate..., host: String? = "service.test", at time: Int64? = nil,
        roots: TrustRoots = PKI.roots(PKI.root), pinsets: [Pinset] = []
    ) throws -> TrustVerdict {
        try TLSClientContext.make(pinsets, roots: roots).verify(
            chain: chain.map(\.der), host: host, at: time)
    }

    @Test(
        arguments: [
            TrustTests.chains, TrustTests.keys, TrustTests.invalid, TrustTests.certificates,
            TrustTests.several,
        ])
    func `it is that of a connection to the same server`(_ examples: [TrustCase]) throws {
        #expect(!examples.isEmpty)
        for example in examples {
            let context = try TLSClientContext.make(example.pinsets, roots: example.roots)
            let verdict = context.verify(chain: example.chain.map(\.der), host: example.host)
            #expect(token(verdict) == example.refusal, "\(example.testDescription)")
            if case .refused(let failure) = verdict {
                #expect(failure.pinset == example.pinset, "\(example.testDescription)")
            }
        }
    }

    @Test func `without a host no name is checked, whatever the policy`() throws {
        #expect(token(try judge(PKI.otherName, host: nil)) == nil)
        #expect(token(try judge(PKI.commonNameOnly, host: nil)) == nil)
        let pins = [pinset(.publicKey, PKI.otherName.pins(.key))]
        #expect(token(try judge(PKI.otherName, host: nil, pinsets: pins)) == nil)
        // Invalid certificates, without pins, and no name to prove.
        let lax = [pinset(.none, allowInvalid: true, validatesName: false)]
        #expect(token(try judge(PKI.selfSigned, host: nil, pinsets: lax)) == nil)
    }

    @Test func `certificates are valid at the time that is asked about`() throws {
        #expect(token(try judge(PKI.direct, at: Self.now)) == nil)
        #expect(token(try judge(PKI.direct, at: Self.now - 7200)) == "certificate-not-yet-valid")
        #expect(token(try judge(PKI.direct, at: Self.now + 90_000)) == "certificate-expired")
        #expect(token(try judge(PKI.direct, at: 0)) == "certificate-not-yet-valid")
        #expect(token(try judge(PKI.early, at: Self.now + 5000)) == nil)
        #expect(token(try judge(PKI.expired)) == "certificate-expired")
    }

    /// RFC 5280 §4.1.2.5: "notBefore through notAfter, inclusive".
    @Test func `certificates are valid from their first second to their last, inclusive`() throws {
        typealias Profile = TestCertificate.Profile
        func made(_ short: Int) -> [TestCertificate] {
            func ends(_ position: Int) -> (from: Int, until: Int) {
                position == short ? (-600, 600) : (-3600, 86_400)
            }
            let root = TestCertificate(
                Profile(
                    name: "Root", isAuthority: true, validFrom: ends(2).from,
                    validUntil: ends(2).until), issuer: nil)
            let middle = TestCertificate(
                Profile(
                    name: "Middle", isAuthority: true, validFrom: ends(1).from,
                    validUntil: ends(1).until), issuer: root)
            let leaf = TestCertificate(
                Profile(
                    name: "Leaf", alternativeNames: PKI.names, validFrom: ends(0).from,
                    validUntil: ends(0).until), issuer: middle)
            return [leaf, middle, root]
        }
        for short in 0...2 {
            let chain = made(short)
            let inspection = try CertificateInspection(certificate: chain[short].der)
            let pins: [Pinset] = [
                pinset(.publicKey, chain[2].pins(.key)),
                pinset(.certificate, chain[2].pins(.fingerprint), name: "q"),
            ]
            for pinsets in [[], pins] {
                func found(_ time: Int64) throws -> String? {
                    token(
                        try judge(
                            chain[0], chain[1], at: time, roots: PKI.roots(chain[2]),
                            pinsets: pinsets))
                }
                #expect(try found(inspection.notAfter) == nil, "\(short)")
                #expect(try found(inspection.notAfter + 1) == "certificate-expired")
                #expect(try found(inspection.notBefore) == nil)
                #expect(try found(inspection.notBefore - 1) == "certificate-not-yet-valid")
            }
        }
    }

    @Test func `it has the time when the first certificate of the chain expires`() throws {
        guard case .trusted(let facts) = try judge(PKI.shortLived) else {
            Issue.record("not trusted")
            return
        }
        let expected = try CertificateInspection(certificate: PKI.shortLived.der).notAfter
        #expect(facts.expires == expected)
    }

    @Test func `a profile requires more, and less of private anchors if it is the default`()
        throws
    {
        func found(_ leaf: TestCertificate, _ profile: ChosenProfile) throws -> String? {
            let context = try TLSClientContext.make(profile: profile)
            let chain = [leaf.der, PKI.intermediate.der]
            return token(context.verify(chain: chain, host: nil))
        }
        // Without key identifiers, as everywhere here.
        #expect(try found(PKI.leaf, .byDefault) == nil)
        #expect(try found(PKI.leaf, ChosenProfile(.lenient)) == nil)
        #expect(try found(PKI.leaf, ChosenProfile(.strict)) == "authority-key-missing")
        #expect(try found(PKI.commonNameOnly, .byDefault) == "san-missing")
        #expect(try found(PKI.commonNameOnly, ChosenProfile(.lenient)) == nil)
        #expect(try found(PKI.otherName, .byDefault) == "san-bad-name")
        #expect(try found(PKI.clientOnly, .byDefault) == "not-for-servers")
        #expect(try found(PKI.clientOnly, ChosenProfile(.lenient)) == "wrong-purpose")
        #expect(try found(PKI.weak, .byDefault) == "rsa-too-short")
    }

    @Test func `anything but a certificate is reported by its position`() throws {
        let context = try TLSClientContext.make()
        let leaf = PKI.leaf.der
        let cases: [([[UInt8]], ChainError)] = [
            ([], .noCertificate),
            ([[]], .malformed(position: 1)),
            ([[0]], .malformed(position: 1)),
            ([leaf + [0]], .malformed(position: 1)),
            ([leaf.dropLast()], .malformed(position: 1)),
            ([leaf, PKI.leaf.publicKey], .malformed(position: 2)),
            (
                [leaf, PKI.intermediate.der, Array(repeating: 0x30, count: 100)],
                .malformed(position: 3)
            ),
        ]
        for (chain, failure) in cases {
            #expect(
                context.verify(chain: chain, host: "service.test")
                    == .refused(TrustError(.chain(failure))))
        }
    }

    @Test func `a truncated certificate is refused`() throws {
        let context = try TLSClientContext.make()
        let leaf = PKI.direct.der
        for count in 0..<leaf.count {
            #expect(
                context.verify(chain: [Array(leaf.prefix(count))], host: "service.test")
                    == .refused(TrustError(.chain(.malformed(position: 1)))))
        }
        #expect(token(context.verify(chain: [leaf], host: "service.test")) == nil)
    }

    @Test func `a chain of a hundred certificates is verified`() throws {
        let context = try TLSClientContext.make()
        let others = Array(repeating: PKI.rogueRoot.der, count: 98)
        let chain = [PKI.leaf.der] + others + [PKI.intermediate.der]
        #expect(token(context.verify(chain: chain, host: "service.test")) == nil)
    }
}
