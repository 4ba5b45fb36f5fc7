/// The pinsets that a host's connections are held to. Each must pass; without any, the chain must
/// be valid under the trust anchors and name the host.
///
/// A pinset is evaluated as AFNetworking's `AFSecurityPolicy` does, in this order:
///
/// 1. A host is given, `allowInvalidCertificates`, `validatesDomainName`, and mode none or no pins:
///    refused, for nothing would prove the name.
/// 2. The host name is part of every chain check if `validatesDomainName` and a host is given.
/// 3. Mode none: passes if `allowInvalidCertificates`, or if the chain is valid.
/// 4. Pinned, and not `allowInvalidCertificates`: the chain must be valid under the trust anchors.
/// 5. Mode certificate: the pins become the only anchors, the chain is evaluated again, also with
///    `allowInvalidCertificates`, and must contain one of them. Mode publicKey: a key of the chain
///    must be a pinned one; with `allowInvalidCertificates` there is no verified chain, and only
///    the leaf's key counts, which the handshake proves.
///
/// A key is looked for on the chain that was found first, and if it is on none of its certificates,
/// on every other valid chain of the leaf to the anchors. Each pinset has its own: of two pinsets
/// one may pass by one chain and the other by another, as where they bring anchors of their own.
///
/// Before that, a pinset whose time is over refuses, unless it then only reports. Where a pinset
/// only reports and these steps refuse, the chain must be valid under the trust anchors and name
/// the host: what would be asked without the pinset.
///
/// Where AFNetworking compares every certificate that a server sent, this compares the verified
/// chain: else anyone could append the genuine certificate to a chain of their own.
package struct SecurityPolicy: Hashable, Sendable {
    package var pinsets: [Pinset]

    package init(pinsets: [Pinset] = []) {
        self.pinsets = pinsets
    }
}

/// The digests of one pin, each nil when the pin does not determine it.
package struct PinDigests: Hashable, Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo.
    package var key: SHA256Digest?
    /// SHA-256 of the certificate.
    package var certificate: SHA256Digest?

    package init(key: SHA256Digest? = nil, certificate: SHA256Digest? = nil) {
        self.key = key
        self.certificate = certificate
    }

    /// Whether a certificate holds the pinned key. A fingerprint pins the key of its certificate,
    /// but that is known only when the certificate itself is seen.
    func matchesKey(of identity: CertificateIdentity) -> Bool {
        if let key { return key == identity.key }
        if let certificate { return certificate == identity.fingerprint }
        return false
    }

    /// Whether a certificate is the pinned one, byte for byte.
    func matches(_ identity: CertificateIdentity) -> Bool {
        certificate == identity.fingerprint
    }

    /// How the pin is reported, ready to paste.
    func text(in mode: PinningMode) -> String {
        let key = key?.keyPinText
        let certificate = certificate?.fingerprintText
        return (mode == .certificate ? certificate ?? key : key ?? certificate) ?? ""
    }
}

/// A security policy whose pins are all digested: what a handshake is judged by.
package struct ResolvedSecurityPolicy: Sendable {
    struct Entry: Sendable {
        var pinset: Pinset
        var pins: [PinDigests]
    }

    let entries: [Entry]

    /// How the pins of the pinset at an index are reported, ready to paste.
    package func pinTexts(of pinset: Int) -> [String] {
        guard entries.indices.contains(pinset) else { return [] }
        let entry = entries[pinset]
        return entry.pins.map { $0.text(in: entry.pinset.mode) }
    }

    /// - Parameters:
    ///   - policy: the pinsets, in order.
    ///   - digest: computes what the pins of the pinset at an index determine; it throws for bytes
    ///     that are no certificate or key.
    package init<Failure: Error>(
        _ policy: SecurityPolicy, digest: (Pin, Int) throws(Failure) -> PinDigests
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
