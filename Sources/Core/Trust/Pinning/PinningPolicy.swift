/// The pinsets that a host's connections must satisfy. Each must pass; without any, the chain must
/// be valid under the trust anchors and name the host.
///
/// A pinset is evaluated as AFNetworking's `AFSecurityPolicy` does, in this order:
///
/// 1. A host is given, with `allowInvalidCertificates`, `validatesDomainName`, and mode none or no
///    pins: refused, because nothing would prove the name.
/// 2. The host name is part of every chain check if `validatesDomainName` and a host is given.
/// 3. Mode none: passes if `allowInvalidCertificates`, or if the chain is valid.
/// 4. Another mode, without `allowInvalidCertificates`: the chain must be valid under the trust
///    anchors.
/// 5. Mode certificate: the pins become the only anchors; the chain is evaluated again, even with
///    `allowInvalidCertificates`, and must contain one of them. Mode publicKey: a key of the chain
///    must be pinned; with `allowInvalidCertificates` there is no verified chain, and only the
///    leaf's key counts, which the handshake proves.
///
/// A key is searched for in the chain that was found first and, if none of its certificates has it,
/// in every other valid chain from the leaf to the anchors. Pinsets are independent in this: one
/// may pass with one chain and another with a different one, for example if they have anchors of
/// their own.
///
/// Before these steps, a pinset that has expired refuses, unless it then only reports. If a pinset
/// only reports and these steps refuse, the chain must be valid under the trust anchors and name
/// the host, as would be required without the pinset.
///
/// AFNetworking compares every certificate that a server sent; this compares the verified chain.
/// Otherwise anyone could append the genuine certificate to a chain of their own.
package struct PinningPolicy: Hashable, Sendable {
    package var pinsets: [Pinset]

    package init(pinsets: [Pinset] = []) {
        self.pinsets = pinsets
    }
}

/// The digests of one pin, each `nil` if the pin does not determine it.
package struct PinDigests: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var key: SHA256Digest?
    /// SHA-256 of the certificate.
    package var certificate: SHA256Digest?

    package init(key: SHA256Digest? = nil, certificate: SHA256Digest? = nil) {
        self.key = key
        self.certificate = certificate
    }

    /// Whether a certificate has the pinned key. A fingerprint pins the key of its certificate, but
    /// that is known only once the certificate itself has been seen.
    func matchesKey(of identity: CertificateIdentity) -> Bool {
        if let key { return key == identity.key }
        if let certificate { return certificate == identity.fingerprint }
        return false
    }

    /// Whether a certificate is the pinned one, byte for byte.
    func matches(_ identity: CertificateIdentity) -> Bool {
        certificate == identity.fingerprint
    }

    /// The pin as it is reported, ready to paste.
    func text(in mode: PinningMode) -> String {
        let key = key?.keyPinText
        let certificate = certificate?.fingerprintText
        return (mode == .certificate ? certificate ?? key : key ?? certificate) ?? ""
    }
}

/// A security policy with the digests of all its pins: what a handshake is evaluated with.
package struct ResolvedPinningPolicy: Sendable {
    struct Entry: Sendable {
        var pinset: Pinset
        var pins: [PinDigests]
    }

    let entries: [Entry]

    /// The pins of the pinset at an index as they are reported, ready to paste.
    package func pinTexts(of pinset: Int) -> [String] {
        guard entries.indices.contains(pinset) else { return [] }
        let entry = entries[pinset]
        return entry.pins.map { $0.text(in: entry.pinset.mode) }
    }

    /// - Parameters:
    ///   - policy: the pinsets, in order.
    ///   - digest: computes the digests that the pins of the pinset at an index determine; throws
    /// for bytes that are not a certificate or key.
    package init<Failure: Error>(
        _ policy: PinningPolicy, digest: (Pin, Int) throws(Failure) -> PinDigests
    ) throws(Failure) {
        var entries: [Entry] = []
        for (index, pinset) in policy.pinsets.enumerated() {
            var pins: [PinDigests] = []
            for pin in pinset.pins {
                pins.append(try digest(pin, index))
            }
            entries.append(Entry(pinset: pinset, pins: pins))
        }
        self.entries = entries
    }
}
