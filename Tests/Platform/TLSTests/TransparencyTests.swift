import COpenSSL
import Testing
import Trust

@testable import PinfoldTLS

@Suite("Certificate Transparency")
struct TransparencyTests {
    private static let one = TestLog()
    private static let two = TestLog(rsaBits: 2048)
    private static let unlisted = TestLog()

    private static func precertificate(
        _ leaf: TestCertificate, _ issuer: TestCertificate
    ) -> SignedTimestamp.Entry {
        .precertificate(issuerKey: issuer.identity.key, signed: leaf.signedPart)
    }

    /// The verdict on a chain if timestamps from logs one and two are required.
    private func verdict(
        _ chain: [[UInt8]], minimum: Int = 2, pinsets: [Pinset] = [],
        roots: TrustRoots = PKI.roots(PKI.root), logs: [TransparencyLog]? = nil,
        timestamps: ServerTimestamps = ServerTimestamps(), at time: Int64? = nil
    ) throws -> TrustVerdict {
        var settings = TLSClientSettings()
        settings.policy = PinningPolicy(pinsets: pinsets)
        settings.profile = ChosenProfile(.lenient)
        settings.transparency = TransparencyPolicy(
            minimum: minimum, logs: logs ?? [Self.one.described(), Self.two.described()])
        return try TLSClientContext(settings, roots: roots).verify(
            chain: chain, host: "service.test", at: time, timestamps: timestamps)
    }

    /// Why too few count; nil: the server is trusted.
    private func failure(_ verdict: TrustVerdict) throws -> TransparencyError? {
        guard case .refused(let failure) = verdict else { return nil }
        #expect(failure.token == "certificate-transparency")
        #expect(failure.pinset == nil)
        guard case .transparency(let found) = failure.reason else {
            Issue.record("\(failure)")
            return TransparencyError(minimum: 0, valid: 0, rejected: [])
        }
        return found
    }

    /// A leaf of the intermediate's with timestamps in it, which the closure creates.
    private func embedded(
        by logs: [TestLog], leaf: TestCertificate = PKI.leaf,
        issuer: TestCertificate = PKI.intermediate, entry: SignedTimestamp.Entry? = nil,
        at seconds: Int64 = PKI.now
    ) -> [UInt8] {
        let entry = entry ?? Self.precertificate(leaf, issuer)
        return leaf.embedding(
            TestLog.list(logs.map { $0.promise(entry, at: seconds) }), issuer: issuer)
    }

    @Test func `timestamps in the certificate count, of EC and RSA logs`() throws {
        let chain = [embedded(by: [Self.one, Self.two]), PKI.intermediate.der]
        #expect(try failure(try verdict(chain)) == nil)
        #expect(try failure(try verdict(chain, minimum: 1)) == nil)
        let single = try failure(
            try verdict([embedded(by: [Self.one]), PKI.intermediate.der]))
        #expect(single == TransparencyError(minimum: 2, valid: 1, rejected: []))
    }

    @Test func `an issuer that is not sent is found among the anchors`() throws {
        let leaf = embedded(by: [Self.one, Self.two], leaf: PKI.direct, issuer: PKI.root)
        #expect(try failure(try verdict([leaf])) == nil)
        // Also if the pinset requires no valid chain, and if the anchor is the pinset's own.
        let lax = [pinset(.publicKey, PKI.direct.pins(.key), allowInvalid: true)]
        #expect(try failure(try verdict([leaf], pinsets: lax)) == nil)
        let own = [pinset(.none, anchors: [PKI.root])]
        #expect(try failure(try verdict([leaf], pinsets: own, roots: PKI.roots())) == nil)
    }

    @Test func `it is asked for whatever the pinsets allow`() throws {
        let lax = [pinset(.publicKey, PKI.selfSigned.pins(.key), allowInvalid: true)]
        #expect(
            try failure(try verdict([PKI.selfSigned.der], pinsets: lax))
                == TransparencyError(minimum: 2, valid: 0, rejected: []))
        let reported = [pinset(.none, allowInvalid: true, validatesName: false)]
        #expect(try failure(try verdict([PKI.selfSigned.der], pinsets: reported)) != nil)
        // Without the issuer nothing in the certificate can be verified.
        let leaf = embedded(
            by: [Self.one, Self.two], leaf: PKI.rogueLeaf, issuer: PKI.rogueRoot)
        let found = try failure(try verdict([leaf], pinsets: reported))
        #expect(
            found?.rejected.map(\.reason)
                == [.noIssuer(log: "test log"), .noIssuer(log: "test log")])
        #expect(try failure(try verdict([leaf, PKI.rogueRoot.der], pinsets: reported)) == nil)
    }

    @Test func `what refuses the chain is reported first`() throws {
        guard case .refused(let failure) = try verdict([PKI.rogueLeaf.der]) else {
            Issue.record("trusted")
            return
        }
        #expect(failure.token == "incomplete-chain")
    }

    @Test func `timestamps of another certificate, key or issuer are wrong`() throws {
        let wrong = TimestampRejectionReason.wrongSignature(log: "test log")
        for entry in [
            Self.precertificate(PKI.renewed, PKI.intermediate),
            Self.precertificate(PKI.leaf, PKI.impostor), .certificate(PKI.leaf.der),
        ] {
            let chain = [embedded(by: [Self.one], entry: entry), PKI.intermediate.der]
            let found = try failure(try verdict(chain, minimum: 1))
            #expect(found?.rejected == [.init(.certificate, wrong)])
        }
        // A list that assigns the log another key.
        let forged = TransparencyLog(
            name: "test log", id: Self.one.id, key: Self.two.der, state: .usable)
        let chain = [embedded(by: [Self.one]), PKI.intermediate.der]
        let found = try failure(try verdict(chain, minimum: 1, logs: [forged]))
        #expect(found?.rejected == [.init(.certificate, wrong)])
    }

    @Test func `every bit of a timestamp is signed`() throws {
        let whole = Self.one.promise(.certificate(PKI.leaf.der), at: PKI.now)
        let chain = [PKI.leaf.der, PKI.intermediate.der]
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            let shown = ServerTimestamps(handshake: TestLog.list([changed]))
            #expect(
                try failure(try verdict(chain, minimum: 1, timestamps: shown)) != nil,
                "byte \(index)")
        }
    }

    @Test func `timestamps of the handshake are of the certificate as it is`() throws {
        let leaf = embedded(by: [Self.one])
        let chain = [leaf, PKI.intermediate.der]
        let shown = ServerTimestamps(
            handshake: TestLog.list([Self.two.promise(.certificate(leaf), at: PKI.now)]))
        #expect(try failure(try verdict(chain, timestamps: shown)) == nil)
        let again = ServerTimestamps(
            handshake: TestLog.list([Self.one.promise(.certificate(leaf), at: PKI.now)]))
        #expect(
            try failure(try verdict(chain, timestamps: again))?.rejected
                == [.init(.handshake, .sameLog(log: "test log"))])
        for garbage in [[], [0], [0, 0], [0, 1, 2], [UInt8](repeating: 255, count: 99)] {
            let bad = ServerTimestamps(handshake: garbage)
            #expect(
                try failure(try verdict(chain, timestamps: bad))?.rejected
                    == [.init(.handshake, .malformedList)])
        }
    }

    @Test func `logs and times are those of the time that is asked about`() throws {
        let chain = [embedded(by: [Self.one, Self.unlisted], at: PKI.now), PKI.intermediate.der]
        let unknown = TransparencyError.Rejected(
            .certificate, .unknownLog(Self.unlisted.id))
        #expect(try failure(try verdict(chain))?.rejected == [unknown])
        #expect(
            try failure(try verdict(chain, minimum: 1, at: PKI.now - 400))?.rejected.first
                == .init(.certificate, .inFuture(log: "test log", at: PKI.now)))
        #expect(try failure(try verdict(chain, minimum: 1, at: PKI.now - 300)) == nil)
        let current = Self.unlisted.described()
        let retired = [Self.one.described(.retired, since: PKI.now), current]
        #expect(
            try failure(try verdict(chain, logs: retired))?.rejected.first
                == .init(.certificate, .afterRetirement(log: "test log", at: PKI.now)))
        let after = [Self.one.described(.retired, since: PKI.now + 1), current]
        #expect(try failure(try verdict(chain, logs: after)) == nil)
        let end = try CertificateInspection(certificate: PKI.leaf.der).notAfter
        for (expiries, fits) in [
            (end..<end + 1, true), (0..<end, false), (end + 1..<end + 2, false),
        ] {
            let logs = [Self.one.described(expiries: expiries)]
            #expect(try (failure(try verdict(chain, minimum: 1, logs: logs)) == nil) == fits)
        }
    }

    @Test func `keys of logs are P-256, or RSA with 2048 bits`() {
        #expect(TransparencyKey.isKnown(Self.one.der))
        #expect(TransparencyKey.isKnown(Self.two.der))
        #expect(!TransparencyKey.isKnown(PKI.weak.publicKey))
        #expect(!TransparencyKey.isKnown(Self.one.der + [0]))
        for count in 0..<Self.one.der.count {
            #expect(!TransparencyKey.isKnown(Array(Self.one.der.prefix(count))))
        }
    }

    @Test func `few of those that may be the issuer are tried`() throws {
        let leaf = embedded(by: [Self.one, Self.two])
        // They bear the intermediate's name but have other keys.
        let others = [[UInt8]](
            repeating: PKI.impostor.der, count: TransparencyKey.issuersAtMost)
        let last = [leaf] + others + [PKI.intermediate.der]
        let lax = [pinset(.publicKey, PKI.leaf.pins(.key), allowInvalid: true)]
        // A required chain identifies it.
        #expect(try failure(try verdict(last)) == nil)
        let found = try failure(try verdict(last, pinsets: lax, roots: PKI.roots()))
        #expect(
            found?.rejected.map(\.reason)
                == [.noIssuer(log: "test log"), .noIssuer(log: "test log")])
        let second = [leaf] + others.dropLast() + [PKI.intermediate.der]
        #expect(try failure(try verdict(second, pinsets: lax, roots: PKI.roots())) == nil)
    }

    @Test func `malformed timestamps are reported as such`() throws {
        let malformed = TransparencyError.Rejected(.certificate, .malformedList)
        for content in [[5, 0], [0xFF], [4, 1]] as [[UInt8]] {
            let leaf = PKI.leaf.embedding(raw: content, issuer: PKI.intermediate)
            let shown = ServerTimestamps(
                handshake: TestLog.list(
                    [Self.one, Self.two].map { $0.promise(.certificate(leaf), at: PKI.now) }))
            let chain = [leaf, PKI.intermediate.der]
            #expect(try failure(try verdict(chain))?.rejected == [malformed])
            #expect(try failure(try verdict(chain, timestamps: shown)) == nil)
        }
    }
}
