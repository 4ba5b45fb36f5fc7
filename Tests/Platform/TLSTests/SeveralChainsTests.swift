import Testing
import Trust

@testable import PinfoldTLS

/// A leaf whose issuer has certificates from two trusted roots, and from one that is not trusted. A
/// server may send them in any order (RFC 8446 §4.4.2), and authorities change it.
@Suite("A leaf with several chains")
struct SeveralChainsTests {
    private typealias Profile = TestCertificate.Profile

    private static func root(_ name: String) -> TestCertificate {
        TestCertificate(Profile(name: name, isAuthority: true), issuer: nil)
    }

    private static func middle(
        _ issuer: TestCertificate, key: TestCertificate? = nil, validUntil: Int = 86_400
    ) -> TestCertificate {
        TestCertificate(
            Profile(name: "Middle", isAuthority: true, validUntil: validUntil), issuer: issuer,
            key: key)
    }

    private static let (first, second, stranger) = (root("A"), root("B"), root("Stranger"))
    private static let byFirst = middle(first)
    private static let bySecond = middle(second, key: byFirst)
    private static let byStranger = middle(stranger, key: byFirst)
    private static let leaf = TestCertificate(
        Profile(name: "Leaf", alternativeNames: PKI.names), issuer: byFirst)

    private static func orders(_ all: [TestCertificate]) -> [[TestCertificate]] {
        guard all.count > 1 else { return [all] }
        return all.indices.flatMap { index in
            var rest = all
            let one = rest.remove(at: index)
            return orders(rest).map { [one] + $0 }
        }
    }

    private static let sent = orders([byFirst, bySecond, byStranger])

    private func verify(
        _ sent: [TestCertificate], _ pinsets: [Pinset],
        roots: TrustRoots = PKI.roots(first, second)
    ) throws -> TrustVerdict {
        try TLSClientContext.make(pinsets, roots: roots).verify(
            chain: ([Self.leaf] + sent).map(\.der), host: "service.test")
    }

    private func outcomes(_ verdict: TrustVerdict) -> [PinsetOutcome]? {
        guard case .trusted(let facts) = verdict else { return nil }
        return facts.outcomes
    }

    private func isRefusedForPins(_ verdict: TrustVerdict) -> Bool {
        guard case .refused(let failure) = verdict, case .noPinMatches = failure.reason else {
            return false
        }
        return true
    }

    @Test(arguments: [PinningMode.publicKey, .certificate])
    func `passes by a pin on any of them, in whatever order they are sent`(mode: PinningMode) throws
    {
        let forms: [TestCertificate.PinForm] =
            mode == .publicKey ? [.key, .fingerprint, .keyFile] : [.fingerprint, .certificateFile]
        for sent in Self.sent {
            for pinned in [Self.first, Self.second, Self.byFirst, Self.bySecond, Self.leaf] {
                for form in forms {
                    let pins = PKI.rogueRoot.pins(form) + pinned.pins(form)
                    let verdict = try verify(sent, [pinset(mode, pins)])
                    // The matching pin is the second one.
                    #expect(outcomes(verdict) == [.passed(PinMatches([1]))], "\(form)")
                }
            }
        }
    }

    @Test(arguments: [PinningMode.publicKey, .certificate])
    func `passes by no pin that is on none that is valid`(mode: PinningMode) throws {
        for sent in Self.sent {
            // A certificate configured in full would itself be an anchor in mode certificate.
            for pinned in [Self.stranger, PKI.rogueRoot] {
                let verdict = try verify(sent, [pinset(mode, pinned.pins(.fingerprint))])
                #expect(isRefusedForPins(verdict))
            }
        }
        // Each of its certificates is valid.
        let old = Self.middle(Self.second, key: Self.byFirst, validUntil: -60)
        for sent in Self.orders([Self.byFirst, old]) {
            let verdict = try verify(sent, [pinset(mode, Self.second.pins(.fingerprint))])
            #expect(isRefusedForPins(verdict))
        }
    }

    @Test func `passes several pinsets, each by a chain of its own`() throws {
        let (one, other) = (
            pinset(.publicKey, Self.first.pins(.key)),
            pinset(.publicKey, Self.second.pins(.key), name: "q")
        )
        let none = pinset(.publicKey, Self.stranger.pins(.key), name: "r")
        for sent in Self.sent {
            #expect(outcomes(try verify(sent, [one, other]))?.count == 2)
            #expect(isRefusedForPins(try verify(sent, [one, other, none])))
        }
    }

    @Test func `is not reported for a pin on the chain that was not found first`() throws {
        var reporting = pinset(.publicKey, Self.second.pins(.key))
        reporting.isEnforced = false
        for sent in Self.sent {
            #expect(outcomes(try verify(sent, [reporting])) == [.passed(PinMatches([0]))])
        }
    }

    @Test func `passes by a pin on an anchor that the pinset brings along`() throws {
        let own = pinset(.publicKey, Self.second.pins(.key), anchors: [Self.second])
        for sent in Self.sent {
            let verdict = try verify(sent, [own], roots: PKI.roots(Self.first))
            #expect(outcomes(verdict) == [.passed(PinMatches([0]))])
            let without = pinset(.publicKey, Self.second.pins(.key))
            #expect(isRefusedForPins(try verify(sent, [without], roots: PKI.roots(Self.first))))
        }
    }

    /// The library ends a chain at the first trusted certificate.
    @Test func `passes by a pin on the root above an intermediate that is trusted itself`() throws {
        for sent in Self.sent + [[]] {
            for pinned in [Self.first, Self.byFirst] {
                let verdict = try verify(
                    sent, [pinset(.publicKey, pinned.pins(.key))],
                    roots: PKI.roots(Self.byFirst, Self.first))
                #expect(outcomes(verdict) == [.passed(PinMatches([0]))])
            }
        }
    }

    /// What a server leaves out is itself trusted, which is the usual remedy; or the certificate
    /// that leads to another root is among the roots.
    @Test(arguments: [PinningMode.publicKey, .certificate])
    func `passes by a pin above what the server has left out`(mode: PinningMode) throws {
        let across = TestCertificate(
            Profile(name: "A", isAuthority: true), issuer: Self.second, key: Self.first)
        let forms: [TestCertificate.PinForm] =
            mode == .publicKey ? [.key, .fingerprint, .keyFile] : [.fingerprint, .certificateFile]
        let leftOut = PKI.roots(Self.byFirst, Self.first)
        let led = PKI.roots(Self.first, across, Self.second)
        for form in forms {
            for (sent, roots, pinned, passes) in [
                ([], leftOut, Self.first, true), ([], leftOut, Self.byFirst, true),
                ([], leftOut, Self.leaf, true), ([], leftOut, Self.bySecond, mode == .publicKey),
                ([], leftOut, Self.second, false), ([Self.bySecond], leftOut, Self.second, false),
                ([], PKI.roots(Self.byFirst), Self.first, false),
                ([Self.byFirst], led, Self.second, true), ([Self.byFirst], led, across, true),
                ([Self.byFirst], PKI.roots(Self.first, Self.second), Self.second, false),
            ] {
                // The fingerprint of a certificate that no server has is not a pin on its key.
                if form == .fingerprint, mode == .publicKey, pinned === Self.bySecond { continue }
                // A certificate configured in full is itself an anchor.
                let isAnchor =
                    form == .certificateFile && (sent + [pinned]).contains { $0 === Self.bySecond }
                let verdict = try verify(sent, [pinset(mode, pinned.pins(form))], roots: roots)
                #expect(
                    (outcomes(verdict) == [.passed(PinMatches([0]))]) == (passes || isAnchor),
                    "\(form) \(verdict)")
                if !passes, !isAnchor { #expect(isRefusedForPins(verdict)) }
            }
        }
    }

    @Test func `passes by no pin above one that is not valid`() throws {
        let old = Self.middle(Self.first, key: Self.byFirst, validUntil: -60)
        for form: TestCertificate.PinForm in [.fingerprint, .certificateFile] {
            let pins = pinset(.certificate, Self.first.pins(form))
            let verdict = try verify([], [pins], roots: PKI.roots(old, Self.first))
            #expect(outcomes(verdict) == nil)
            // A name other than the leaf's, where invalid chains pass.
            let careless = pinset(.certificate, Self.first.pins(form), allowInvalid: true)
            let other = try TLSClientContext.make(
                [careless], roots: PKI.roots(Self.byFirst, Self.first)
            ).verify(chain: [Self.leaf.der], host: "other.test")
            guard case .refused(let failure) = other, case .chain(.hostMismatch) = failure.reason
            else {
                Issue.record("\(other)")
                continue
            }
        }
    }

    @Test func `is verified at bounded cost, however many are sent`() throws {
        let many = (0..<60).map { _ in Self.middle(Self.second, key: Self.byFirst) }
        let context = try TLSClientContext.make(
            [pinset(.publicKey, PKI.rogueRoot.pins(.key))],
            roots: PKI.roots(Self.first, Self.second))
        let chain = ([Self.leaf, Self.byFirst] + many).map(\.der)
        #expect(isRefusedForPins(context.verify(chain: chain, host: "service.test")))
        let presented = try PresentedChain(der: chain)
        let leaf = try #require(presented.certificates[0])
        var evidence = try #require(
            PeerEvidence(
                certificate: leaf, sent: presented.certificates.pointer,
                verifier: context.verifier))
        _ = evidence.evaluateChain(anchors: .roots(pinset: nil), host: nil)
        var tried = 0
        let none = evidence.otherChain(anchors: .roots(pinset: nil), host: nil) { _ in
            tried += 1
            return false
        }
        #expect(none == nil)
        #expect(tried == PathSearch.chainsVerified)
    }
}
