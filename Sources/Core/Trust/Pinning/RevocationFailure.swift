/// What is wrong with what is said of certificates' revocation.
package enum RevocationProblem: String, Hashable, Sendable, CaseIterable {
    /// A list of its issuer (`tls.crls`) has the certificate.
    case revoked = "certificate-revoked"
    /// There is no list of the issuer.
    case listMissing = "crl-missing"
    /// The issuer's list should have been replaced by a newer one.
    case listExpired = "crl-expired"
    /// The issuer did not sign the list, or may not, or it is not one for this certificate.
    case listInvalid = "crl-invalid"
    /// The server stapled no OCSP response, and one is required (`tls.ocspStapling`).
    case stapleMissing = "ocsp-missing"
    /// The response is none, is not its issuer's, or about another certificate.
    case stapleInvalid = "ocsp-invalid"
    /// The response should have been replaced by a newer one.
    case stapleExpired = "ocsp-expired"
    /// The response says that the certificate is revoked.
    case stapleRevoked = "ocsp-revoked"
    /// The response says that the authority does not know the certificate.
    case stapleUnknown = "ocsp-unknown"

    /// A short token for metrics and the log.
    package var token: String { rawValue }
}

/// Why a chain is refused though each of its certificates is valid by itself.
package struct RevocationFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package var problem: RevocationProblem
    /// One sentence. Subjects in it come from the server: printable ASCII, bounded.
    package var description: String

    package init(_ problem: RevocationProblem, _ description: String) {
        self.problem = problem
        self.description = description
    }
}
