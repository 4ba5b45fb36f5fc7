import Trust

extension RevocationReason {
    /// The entry of a chain that is refused for it.
    package var entry: ReasonEntry {
        switch self {
        case .revoked:
            entry(
                "a certificate in the server's chain has been revoked",
                "Do not bypass this until the server's operator has explained it: a key may have "
                    + "been stolen. The server needs a new certificate.")
        case .listMissing:
            entry(
                "the revocation list of an issuer in the server's chain is missing",
                "Add the CRL of the issuer that the reply names to `tls.crls`: every certificate "
                    + "below the anchor needs its issuer's.")
        case .listExpired:
            entry(
                "a list of revoked certificates is out of date",
                "Fetch the issuer's new CRL into the file that `tls.crls` names, before each "
                    + "`nextUpdate`; it takes effect without a reload.")
        case .listInvalid:
            entry(
                "a list of revoked certificates is not valid for its issuer",
                "Fetch the CRL again from the issuer that the reply names: it is damaged, forged, "
                    + "or from another CA with the same name.")
        case .stapleMissing:
            entry(
                "the server stapled no OCSP response, and `tls.ocspStapling` requires one",
                "Enable OCSP stapling on the server. In an inspected tunnel, the client must also "
                    + "request it.")
        case .stapleInvalid:
            entry(
                "the OCSP response that the server stapled is not valid for its certificate",
                "The reply says what is wrong: have the server fetch the response again from the "
                    + "CA that issued its certificate.")
        case .stapleExpired:
            entry(
                "the OCSP response that the server stapled is out of date",
                "Find out why the server does not renew it; check the gateway's clock.")
        case .stapleRevoked:
            entry(
                "according to the OCSP response that the server stapled, its certificate is "
                    + "revoked",
                "Do not bypass this until the server's operator has explained it: a key may have "
                    + "been stolen. The server needs a new certificate.")
        case .stapleUnknown:
            entry(
                "according to the OCSP response that the server stapled, the CA does not know its "
                    + "certificate",
                "The certificate may be forged, or the OCSP responder may not be up to date: ask "
                    + "the CA.")
        }
    }

    private func entry(_ meaning: String, _ remedy: String) -> ReasonEntry {
        ReasonEntry("tls-\(token)", .tls, 502, .tlsCertificateError, meaning, remedy: remedy)
    }
}
