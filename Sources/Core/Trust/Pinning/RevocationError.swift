/// Why a certificate's revocation status does not let its chain pass.
package enum RevocationReason: String, Hashable, Sendable, CaseIterable {
    /// A list of its issuer (`tls.crls`) contains the certificate.
    case revoked = "certificate-revoked"
    /// There is no list from the issuer.
    case listMissing = "crl-missing"
    /// The issuer's list is past the time by which a newer one should have replaced it.
    case listExpired = "crl-expired"
    /// The issuer did not sign the list, or may not, or it does not cover this certificate.
    case listInvalid = "crl-invalid"
    /// The server stapled no OCSP response, but one is required (`tls.ocspStapling`).
    case stapleMissing = "ocsp-missing"
    /// The response is malformed, is not from the issuer, or is about another certificate.
    case stapleInvalid = "ocsp-invalid"
    /// The response is past the time by which a newer one should have replaced it.
    case stapleExpired = "ocsp-expired"
    /// According to the response the certificate is revoked.
    case stapleRevoked = "ocsp-revoked"
    /// According to the response the authority does not know the certificate.
    case stapleUnknown = "ocsp-unknown"

    /// A short token for metrics and the log.
    package var token: String { rawValue }
}

/// Why a chain is refused although each of its certificates is valid by itself.
package struct RevocationError: Error, Hashable, Sendable, CustomStringConvertible {
    package var reason: RevocationReason
    /// One sentence. The subjects in it come from the server: printable ASCII, of limited length.
    package var description: String

    package init(_ reason: RevocationReason, _ description: String) {
        self.reason = reason
        self.description = description
    }
}
