import HTTPCore
import Trust

/// A request for a certificate: the authority to issue it, the host, and the kind of key.
package struct CertificateRequest: Sendable {
    package let authority: CertificateAuthority
    package let name: ReferenceIdentifier
    package let keyKind: CertificateKeyKind
    /// The certificate that the server itself presented, or `nil` if unknown.
    package let server: ServerCertificate?
    /// The network of the client whose tunnel it is for, as limits count clients; `nil` if it is
    /// for no client.
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

    /// The cache key of certificates: two requests with the same key get the same certificate.
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
/// The client's certificate takes over from it who the server belongs to (country, state, locality,
/// organization and unit), for the benefit of people, and its end; but never its names. The
/// client's certificate names the requested host and nothing else, whatever the server's is valid
/// for. Additional names would let the client send requests for another host, which the gateway has
/// not checked, on the same connection (RFC 9110 §7.4), and a wildcard that covers the host covers
/// others, too.
package struct ServerCertificate: Sendable {
    /// The part that identifies the certificate in cache keys.
    package let fingerprint: SHA256Digest
    let certificate: SharedCertificate
    /// Seconds since 1970.
    let notAfter: Int64

    /// - Parameter der: the server's own certificate. Returns `nil` if it is not a certificate.
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
package enum IssuanceError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Too many names are waiting for theirs.
    case overloaded
    /// The process is shutting down.
    case closed
    /// The authority's own certificate does not permit this host.
    case outsideConstraints
    /// The authority is not valid now.
    case authority(AuthorityError)
    /// The library failed; with its message.
    case library(String)

    package var description: String {
        switch self {
        case .overloaded: "too many certificates are waiting to be issued"
        case .closed: "the gateway is stopping"
        case .outsideConstraints:
            "the name constraints of the CA for interception do not permit this host"
        case .authority(let error): "the CA for interception: \(error)"
        case .library(let reason): "the TLS library failed: \(reason)"
        }
    }
}
