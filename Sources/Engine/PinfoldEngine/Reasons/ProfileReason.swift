import Trust

extension Reason {
    /// The reason of a server that is not trusted.
    package init(_ failure: TrustError) {
        switch failure.reason {
        case .chain(.rule(let rule, _)): self = .profile(rule)
        case .chain(.revocation(let failure)): self = .revocation(failure.reason)
        default: self = .trust(failure.kind)
        }
    }
}

extension CertificateRule {
    /// The token, status, meaning and remedy for a chain that breaks the rule.
    package var entry: ReasonEntry {
        ReasonEntry(
            "tls-\(token)", .tls, 502, .tlsCertificateError,
            "a certificate in the server's chain \(problem)",
            remedy: "Have the certificate that the reply names reissued; `tls.profile: lenient` "
                + "for the host accepts it as it is.")
    }
}
