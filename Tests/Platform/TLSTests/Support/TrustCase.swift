import PinfoldTLS
import Testing
import Trust

/// A server, a policy, and the expected result.
struct TrustCase: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var chain: [TestCertificate]
    var host = "service.test"
    var roots: TrustRoots = PKI.roots(PKI.root)
    var pinsets: [Pinset] = []
    /// The token of the refusal, or `nil` if trusted.
    var refusal: String?
    /// The refusing pinset.
    var pinset: String?

    init(
        _ description: String, _ chain: TestCertificate..., host: String = "service.test",
        roots: [TestCertificate] = [PKI.root], pinsets: [Pinset] = [], refusal: String? = nil,
        by pinset: String? = nil
    ) {
        testDescription = description
        self.chain = chain
        self.host = host
        self.roots = roots.isEmpty ? PKI.roots() : PKI.roots(roots[0])
        self.pinsets = pinsets
        self.refusal = refusal
        self.pinset = pinset
    }
}

/// Makes the pinset of a case.
func pinset(
    _ mode: PinningMode, _ pins: [Pin] = [], allowInvalid: Bool = false, validatesName: Bool = true,
    anchors: [TestCertificate] = [], name: String = "p"
) -> Pinset {
    Pinset(
        name: name, mode: mode, pins: pins, allowInvalidCertificates: allowInvalid,
        validatesDomainName: validatesName, anchors: anchors.map(\.der))
}
