import Trust

extension RevocationProblem {
    /// Everything that is said of a chain that is refused for it.
    package var entry: ReasonEntry {
        switch self {
        case .revoked:
            entry(
                "an authority has revoked a certificate of the server's chain",
                "Do not go around it before the server's operator has explained it: a key may have "
                    + "been stolen. The server needs a new certificate.")
        case .listMissing:
            entry(
                "there is no list of revoked certificates of an issuer in the server's chain",
                "Add the CRL of the issuer that the reply names to `tls.crls`: every certificate "
                    + "below the anchor needs its issuer's.")
        case .listExpired:
            entry(
                "a list of revoked certificates should have been replaced by a newer one",
                "Fetch the issuer's new CRL into the file that `tls.crls` names, before each "
                    + "`nextUpdate`; it is taken up without a reload.")
        case .listInvalid:
            entry(
                "a list of revoked certificates is not what its issuer says",
                "Fetch the CRL anew from the issuer that the reply names: it is damaged, forged, "
                    + "or of another authority of that name.")
        case .stapleMissing:
            entry(
                "the server stapled no OCSP response, and `tls.ocspStapling` requires one",
                "Switch on OCSP stapling at the server. In an inspected tunnel the client must ask "
                    + "for it, too.")
        case .stapleInvalid:
            entry(
                "the OCSP response that the server stapled is not its authority's",
                "The reply says what is wrong: have the server fetch the response anew from its "
                    + "certificate's authority.")
        case .stapleExpired:
            entry(
                "the OCSP response that the server stapled is out of date",
                "Find out why the server does not renew it; check the gateway's clock.")
        case .stapleRevoked:
            entry(
                "the server's certificate is revoked, by the OCSP response that it stapled",
                "Do not go around it before the server's operator has explained it: a key may have "
                    + "been stolen. The server needs a new certificate.")
        case .stapleUnknown:
            entry(
                "the authority does not know the server's certificate, by the OCSP response that "
                    + "the server stapled",
                "The certificate may be forged, or its responder not up to date: ask the "
                    + "authority.")
        }
    }

    private func entry(_ meaning: String, _ remedy: String) -> ReasonEntry {
        ReasonEntry("tls-\(token)", .tls, 502, .tlsCertificateError, meaning, remedy: remedy)
    }
}
