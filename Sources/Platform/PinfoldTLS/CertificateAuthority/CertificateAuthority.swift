import COpenSSL
import HTTPCore
import Trust

/// The authority whose certificates are presented to clients of intercepted hosts: its certificate,
/// the certificates sent along with those that it issues, and its private key.
///
/// Immutable; safe to use from any number of threads at once.
package final class CertificateAuthority: @unchecked Sendable {
    /// The contents of its certificate, including its SHA-256 fingerprint.
    package let inspection: CertificateInspection
    /// Its certificate in DER, which clients must trust.
    package let der: [UInt8]

    let certificate: SharedCertificate
    let key: PrivateKey
    /// The certificates sent after an issued one in a handshake: those that follow the first one in
    /// the file, preceded by the first itself if it is not self-signed.
    let intermediates: [SharedCertificate]
    /// The certificate's name constraints, or `nil` if there are none.
    let nameConstraints: UnsafeMutablePointer<NAME_CONSTRAINTS>?

    /// Reads an authority that is valid at `now`.
    ///
    /// - Parameters:
    ///   - certificatePEM: its certificate. Any that follow are sent to clients: those that lead
    ///     from it to a trust anchor of theirs.
    ///   - keyPEM: its private key, unencrypted.
    ///   - now: seconds since 1970.
    package convenience init(
        certificatePEM: [UInt8], keyPEM: [UInt8], now: Int64
    ) throws(AuthorityError) {
        try self.init(certificatePEM: certificatePEM, keyPEM: keyPEM)
        try requireValid(at: now)
    }

    /// Like ``init(certificatePEM:keyPEM:now:)``, but whatever the time.
    package init(certificatePEM: [UInt8], keyPEM: [UInt8]) throws(AuthorityError) {
        var chain = SharedCertificate.all(inPEM: certificatePEM)
        guard !chain.isEmpty else { throw .noCertificate }
        let first = chain.removeFirst()
        if X509_check_issued(first.pointer, first.pointer) != X509_V_OK {
            chain.insert(first, at: 0)
        }
        guard let key = PrivateKey(pem: keyPEM) else { throw .noKey }
        guard let der = first.der, let inspection = try? CertificateInspection(certificate: der)
        else { throw .noCertificate }
        certificate = first
        intermediates = chain
        self.key = key
        self.der = der
        self.inspection = inspection
        nameConstraints = X509_get_ext_d2i(first.pointer, NID_name_constraints, nil, nil)?
            .assumingMemoryBound(to: NAME_CONSTRAINTS.self)
        try requireAuthority()
    }

    deinit { NAME_CONSTRAINTS_free(nameConstraints) }

    /// SHA-256 of the certificate, which identifies the authority.
    package var fingerprint: SHA256Digest { inspection.identity.fingerprint }

    /// The certificate in PEM, which clients must trust.
    package var pem: [UInt8] { certificate.pem ?? [] }

    /// The kind of its key, for instance `ECDSA P-256`.
    package var keyText: String { key.text }

    /// When its certificate ends, as people read it.
    package var endText: String { CivilDate.text(secondsSince1970: inspection.notAfter) }

    /// A description of the names that its certificates are limited to, or `nil` if there is no
    /// limit.
    package var constraintsText: String? {
        let pointer = certificate.pointer
        let index = X509_get_ext_by_NID(pointer, NID_name_constraints, -1)
        guard let entry = X509_get_ext(pointer, index) else { return nil }
        let text = withMemoryBIO { X509V3_EXT_print($0, entry, 0, 0) == 1 }
        return text.map { String(decoding: $0, as: UTF8.self) }
    }

    /// Whether an earlier authority still vouches for it at `now` (seconds since 1970).
    package func isVouchedFor(at now: Int64) -> Bool {
        intermediates.contains { $0.pointer != certificate.pointer && $0.isUnexpired(at: now) }
    }

    /// The first certificate of a PEM file, which clients must trust, or `nil` if there is none.
    package static func anchor(inPEM file: [UInt8]) -> (pem: [UInt8], der: [UInt8])? {
        guard let first = SharedCertificate.all(inPEM: file).first, let pem = first.pem,
            let der = first.der
        else { return nil }
        return (pem, der)
    }

    /// Throws if `now` is outside the certificate's validity.
    /// - Parameter now: seconds since 1970.
    package func requireValid(at now: Int64) throws(AuthorityError) {
        guard now <= inspection.notAfter else { throw .expired(notAfter: inspection.notAfter) }
        guard now >= inspection.notBefore else {
            throw .notYetValid(notBefore: inspection.notBefore)
        }
    }

    /// Checks that the authority may issue certificates at all, and that the key belongs to it.
    private func requireAuthority() throws(AuthorityError) {
        defer { ERR_clear_error() }
        guard X509_check_private_key(certificate.pointer, key.pointer) == 1 else {
            throw .keyMismatch
        }
        // 1: basicConstraints allows it, and keyUsage does not contradict.
        guard X509_check_ca(certificate.pointer) == 1 else {
            throw .notAnAuthority("it lacks CA:TRUE, or keyCertSign in its key usage")
        }
        // Without one its certificates have no authority key identifier, which strict clients
        // require.
        guard X509_get0_subject_key_id(certificate.pointer) != nil else {
            throw .notAnAuthority("it lacks a subject key identifier")
        }
        guard inspection.notBefore <= inspection.notAfter else {
            throw .notAnAuthority("its times cannot be read, or it ends before it begins")
        }
        if let weakness = key.weakness { throw .weakKey(weakness) }
    }
}
