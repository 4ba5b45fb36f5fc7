import HTTPCore
import Trust

/// What a certificate is asked for: by whom it is to be issued, for which host, and with what kind
/// of key.
package struct CertificateRequest: Sendable {
    package let authority: CertificateAuthority
    package let name: ReferenceIdentifier
    package let keyKind: CertificateKeyKind
    /// The certificate that the server itself presented; nil: it is not known.
    package let server: ServerCertificate?
    /// Whose tunnel it is for, as limits count clients; nil: no client's.
    package let client: IPNetwork?

    package init(
        authority: CertificateAuthority, name: ReferenceIdentifier, keyKind: CertificateKeyKind,
        server: ServerCertificate? = nil, client: IPNetwork? = nil
    ) {
        self.authority = authority
        self.name = name
        self.keyKind = keyKind
        self.server = server
        self.client = client
    }

    /// By what certificates are kept: two requests with one key are given one certificate.
    struct Key: Hashable, Sendable {
        let name: ReferenceIdentifier
        let kind: CertificateKeyKind
        let authority: SHA256Digest
        let server: SHA256Digest?
    }

    var key: Key {
        Key(
            name: name, kind: keyKind, authority: authority.fingerprint,
            server: server?.fingerprint)
    }
}

/// The certificate that an intercepted server presented to the gateway.
///
/// What the certificate for the client takes over from it: who the server belongs to (country,
/// state, locality, organization and unit), for people who look, and its end. Never its names. The
/// client's certificate names the host that was asked for and nothing else, whatever the server's
/// is valid for: names beside it would let the client send that host's requests for another one
/// (RFC 9110 §7.4), which the gateway has not judged; a wildcard that covers the host covers
/// others, too.
package struct ServerCertificate: Sendable {
    /// What requests for the same certificate share.
    package let fingerprint: SHA256Digest
    let certificate: SharedCertificate
    /// Seconds since 1970.
    let notAfter: Int64

    /// - Parameter der: the server's own certificate. Nil if it is none.
    package init?(der: [UInt8]) {
        guard let certificate = SharedCertificate(der: der),
            let inspection = try? CertificateInspection(certificate: der)
        else { return nil }
        self.certificate = certificate
        fingerprint = inspection.identity.fingerprint
        notAfter = inspection.notAfter
    }
}

/// Why no certificate was issued.
package enum IssuanceFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// Too many names are waiting for theirs.
    case overloaded
    /// The process ends.
    case closed
    /// The authority's own certificate does not let it name this host.
    case outsideConstraints
    /// The authority is not valid now.
    case authority(AuthorityError)
    /// The library failed, in its words.
    case library(String)

    package var description: String {
        switch self {
        case .overloaded: "too many certificates are waiting to be issued"
        case .closed: "the gateway stops"
        case .outsideConstraints:
            "the interception authority's name constraints do not permit this host"
        case .authority(let error): "the interception authority: \(error)"
        case .library(let reason): "the TLS library failed: \(reason)"
        }
    }
}
