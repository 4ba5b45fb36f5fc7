import Trust

// What a failure report shows beyond what the server was verified by. None of it is computed unless
// requested.
extension TLSClientContext {
    /// The pins of one of the policy's pinsets, ready to paste.
    package func pinTexts(ofPinset pinset: Int) -> [String] { verifier.policy.pinTexts(of: pinset) }

    /// The valid chain that can be built from the leaf to a trust anchor of one of the policy's
    /// pinsets, regardless of its name and pins.
    ///
    /// - Parameters:
    ///   - chain: the DER of what a server presents, the leaf first.
    ///   - pinset: the pinset's index in the policy; `nil` for the policy's own anchors.
    /// - Returns: DER from the leaf to the anchor; empty if there is no such chain.
    package func validatedChain(of chain: [[UInt8]], pinset: Int?) -> [[UInt8]] {
        guard pinset.map(verifier.pinsets.indices.contains) ?? true,
            let presented = try? PresentedChain(der: chain),
            let leaf = presented.certificates[0],
            var evidence = PeerEvidence(
                certificate: leaf, sent: presented.certificates.pointer, verifier: verifier),
            let built = evidence.validated(pinset: pinset)
        else { return [] }
        var certificates: [[UInt8]] = []
        for index in 0..<built.count {
            guard let der = built[index].flatMap({ X509View($0).der }) else { return [] }
            certificates.append(der)
        }
        return certificates
    }

    /// The valid paths from a leaf to trust anchors, to the policy's own and to those of its
    /// pinsets, regardless of its name and pins. There are several where authorities have certified
    /// each other's keys.
    ///
    /// - Parameters:
    ///   - chain: the DER of what a server presents, the leaf first.
    ///   - most: how many to return at most.
    /// - Returns: for each path, its certificates from the leaf to the anchor, the path first that
    ///   verification finds first; empty if there is none.
    package func validPaths(of chain: [[UInt8]], most: Int) -> [[CertificateInspection]] {
        guard let presented = try? PresentedChain(der: chain),
            let leaf = presented.certificates[0],
            var evidence = PeerEvidence(
                certificate: leaf, sent: presented.certificates.pointer, verifier: verifier)
        else { return [] }
        var paths: [[CertificateInspection]] = []
        for built in evidence.paths().prefix(most) {
            var path: [CertificateInspection] = []
            for index in 0..<built.certificates.count {
                guard let der = built.certificates[index].flatMap({ X509View($0).der }),
                    let one = try? CertificateInspection(certificate: der)
                else { return paths }
                path.append(one)
            }
            paths.append(path)
        }
        return paths
    }
}

extension TrustVerifier {
    /// The pins of a pinset, ready to paste.
    ///
    /// - Throws: for a pin that is not a certificate or key.
    package static func pinTexts(of pinset: Pinset) throws(TLSContextError) -> [String] {
        try resolve(PinningPolicy(pinsets: [pinset])).pinTexts(of: 0)
    }
}
