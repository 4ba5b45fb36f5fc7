import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

extension OwnCertificateMetrics {
    /// The certificates that the gateway itself presents, each file once for each use.
    static func all(of configuration: ConfigurationSnapshot) -> [OwnCertificateMetrics] {
        var found: [OwnCertificateMetrics] = []
        func add(_ use: Use, _ path: String, _ pem: [UInt8]) {
            // The first in a file is the gateway's own.
            guard !found.contains(where: { $0.use == use && $0.file == path }),
                let der = CertificateAuthority.anchor(inPEM: pem)?.der,
                let inspection = try? CertificateInspection(certificate: der)
            else { return }
            found.append(
                OwnCertificateMetrics(use: use, file: path, notAfter: inspection.notAfter))
        }
        for certificate in configuration.listeners.flatMap({ $0.tls?.certificates ?? [] }) {
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
