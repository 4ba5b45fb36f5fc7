import HTTPCore

/// Why a certificate and a key are not an authority that can issue certificates.
package enum AuthorityError: Error, Hashable, Sendable, CustomStringConvertible {
    /// There is no certificate among the PEM blocks, or one that cannot be read.
    case noCertificate
    /// There is no private key that can be read without a password.
    case noKey
    /// The key is another certificate's.
    case keyMismatch
    /// The certificate may not issue others, and why.
    case notAnAuthority(String)
    /// Clients would refuse what is signed with the key, and why.
    case weakKey(String)
    /// Its time is over; seconds since 1970.
    case expired(notAfter: Int64)
    /// Its time has not come; seconds since 1970.
    case notYetValid(notBefore: Int64)
    /// It may not vouch for a successor: its path length is limited to 0.
    case noSuccessor
    /// A successor has its name: clients could not tell the two apart.
    case sameName
    /// The library failed, in its words.
    case library(String)

    /// Whether the fault is the key's rather than the certificate's.
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
        case .noKey: "no private key in PEM that is not encrypted"
        case .keyMismatch: "the key is not the certificate's"
        case .notAnAuthority(let reason): "not the certificate of an authority: \(reason)"
        case .weakKey(let reason): "the key is too weak: \(reason)"
        case .expired(let time): "expired at \(CivilDate.text(secondsSince1970: time))"
        case .notYetValid(let time):
            "not valid before \(CivilDate.text(secondsSince1970: time))"
        case .noSuccessor:
            "its path length is limited to 0: it cannot vouch for a successor; make one with "
                + "`pinfold ca init` and install it everywhere"
        case .sameName: "the successor has the same name; give it another"
        case .library(let reason): "the TLS library failed: \(reason)"
        }
    }
}
