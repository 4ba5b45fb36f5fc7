import PinfoldConfiguration
import PinfoldTLS

/// A certificate that the gateway itself presents, or issues with.
struct OwnCertificate: Sendable, Equatable {
    /// To what it is presented: the label value.
    enum Use: String, Sendable {
        /// The clients of a listener.
        case listener
        /// Not presented: it issues the certificates for intercepted tunnels.
        case authority
        /// Servers that request one.
        case client
    }

    var use: Use
    /// The absolute path of its file.
    var file: String
    /// When it expires, in seconds since 1970.
    var notAfter: Int64

    /// The certificates that the gateway itself presents, each file once for each use.
    static func all(of configuration: ConfigurationSnapshot) -> [OwnCertificate] {
        var found: [OwnCertificate] = []
        func add(_ use: Use, _ path: String, _ pem: [UInt8]) {
            // The first in a file is the gateway's own.
            guard !found.contains(where: { $0.use == use && $0.file == path }),
                let der = CertificateAuthority.anchor(inPEM: pem)?.der,
                let inspection = try? CertificateInspection(certificate: der)
            else { return }
            found.append(OwnCertificate(use: use, file: path, notAfter: inspection.notAfter))
        }
        for certificate in (configuration.listeners.map(\.tls) + [configuration.admin.tls])
            .flatMap({ $0?.certificates ?? [] })
        {
            add(.listener, certificate.path, certificate.chain)
        }
        if let authority = configuration.interception.authority {
            add(.authority, authority.certificatePath, authority.certificatePEM)
        }
        for identity in configuration.hosts.entries.compactMap(\.tls.clientIdentity) {
            add(.client, identity.path, identity.chain)
        }
        return found
    }
}
