import HTTPCore

/// Why a certificate and a key cannot be used as an authority that issues certificates.
package enum AuthorityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The PEM contains no certificate, or one that cannot be read.
    case noCertificate
    /// There is no private key that can be read without a password.
    case noKey
    /// The key belongs to another certificate.
    case keyMismatch
    /// The certificate may not issue others; with the reason.
    case notAnAuthority(String)
    /// Clients would refuse signatures made with the key; with the reason.
    case weakKey(String)
    /// The certificate has expired; seconds since 1970.
    case expired(notAfter: Int64)
    /// The certificate is not valid yet; seconds since 1970.
    case notYetValid(notBefore: Int64)
    /// It cannot sign a successor: its path length is limited to 0.
    case noSuccessor
    /// The successor would have the same name: clients could not tell the two apart.
    case sameName
    /// The library failed; with its message.
    case library(String)

    /// Whether the problem is with the key rather than the certificate.
    package var concernsKey: Bool {
        switch self {
        case .noKey, .keyMismatch, .weakKey: true
        case .noCertificate, .notAnAuthority, .expired, .notYetValid, .noSuccessor, .sameName,
            .library:
            false
        }
    }

    package var description: String {
        switch self {
        case .noCertificate: "no certificate in PEM"
        case .noKey: "no unencrypted private key in PEM"
        case .keyMismatch: "the key does not belong to the certificate"
        case .notAnAuthority(let reason): "not a certificate authority: \(reason)"
        case .weakKey(let reason): "the key is too weak: \(reason)"
        case .expired(let time): "expired at \(CivilDate.text(secondsSince1970: time))"
        case .notYetValid(let time):
            "not valid before \(CivilDate.text(secondsSince1970: time))"
        case .noSuccessor:
            "its path length is limited to 0, so it cannot sign a successor; create a new CA with "
                + "`pinfold ca init` and install it on all clients"
        case .sameName: "the successor has the same name; choose a different one with --name"
        case .library(let reason): "the TLS library failed: \(reason)"
        }
    }
}
