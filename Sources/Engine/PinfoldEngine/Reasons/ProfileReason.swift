import Trust

extension Reason {
    /// The reason of a server that is not trusted.
    package init(_ failure: TrustFailure) {
        switch failure.reason {
        case .chain(.rule(let rule, _)): self = .profile(rule)
        case .chain(.revocation(let failure)): self = .revocation(failure.problem)
        default: self = .trust(TrustReason(failure))
        }
    }
}

extension CertificateRule {
    /// Everything that is said of a chain that breaks the rule.
    package var entry: ReasonEntry {
        ReasonEntry(
            "tls-\(token)", .tls, 502, .tlsCertificateError,
            "a certificate of the server's chain \(problem)",
            remedy: "Have the certificate that the reply names issued anew; `tls.profile: lenient`"
                + " for the host accepts it as it is.")
    }
}
