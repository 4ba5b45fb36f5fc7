import Clocks
import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// The keys of `tls` that only entries of `hosts` have. If they applied to every host, any server
/// could request the gateway's identity.
extension UpstreamTLS {
    /// `tls` of an entry of `hosts`.
    static var hostTable: KeyTable<Self> {
        KeyTable(keys: table.keys + clientKeys, later: table.later)
    }

    private static var clientKeys: [ConfigurationKey<Self>] {
        [
            ConfigurationKey(
                "clientCertificate", byDefault: "none",
                readSection: { reader, section, tls in
                    tls.clientIdentity = section.flatMap { reader.clientIdentity($0) }
                },
                text: { $0.clientIdentity.map { YAMLText.quoted($0.path) } }),
            // Read together with the certificate.
            ConfigurationKey(
                "clientKey", byDefault: "the file of clientCertificate",
                readSection: { _, _, _ in },
                text: { $0.clientIdentity.map { YAMLText.quoted($0.keyPath) } }),
        ]
    }
}

extension SnapshotReader {
    /// The certificate and key for servers that ask for a client certificate, or `nil` if none is
    /// configured or the files cannot be used.
    fileprivate func clientIdentity(_ section: Section) -> ClientIdentity? {
        guard let field = section["clientCertificate"] else {
            section["clientKey"]?.fail(
                "requires clientCertificate", expected: "clientCertificate with its certificate")
            return nil
        }
        let keyField = section["clientKey"] ?? field
        guard let path = field.filePath(), let keyPath = keyField.filePath() else { return nil }
        guard let chain = field.contents(ofFile: path),
            let key = keyField.contents(ofFile: keyPath, isKey: true)
        else { return nil }
        let identity = ClientIdentity(path: path, chain: chain, keyPath: keyPath, key: key)
        switch ClientIdentityReview(identity, at: validation.environment.now) {
        case .usable(let warnings):
            for warning in warnings { field.warn(warning) }
            return identity
        case .unusable(let problem, let expected, let isOfKey):
            (isOfKey ? keyField : field).fail(problem, expected: expected)
            return nil
        }
    }
}

/// The result of checking a client certificate and its key.
enum ClientIdentityReview {
    case usable(warnings: [String])
    case unusable(String, expected: String, isOfKey: Bool)

    /// How many days before a certificate expires a warning is given.
    private static let daysToEnd: Int64 = 30

    /// Checks the files' content.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    init(_ files: ClientIdentity, at now: Int64) {
        let made: TLSClientIdentity
        do throws(TLSIdentityError) {
            made = try TLSClientIdentity(chainPEM: files.chain, keyPEM: files.key)
        } catch {
            switch error {
            case .noCertificate, .unreadableTimes:
                self = .unusable(
                    "\(quoted(files.path)) holds \(error)", expected: "a certificate in PEM",
                    isOfKey: false)
            case .noKey, .encryptedKey:
                self = .unusable(
                    "\(quoted(files.keyPath)) holds \(error)", expected: "a private key in PEM",
                    isOfKey: true)
            case .refused:
                self = .unusable(
                    "\(error)", expected: "the private key of \(files.path)", isOfKey: true)
            }
            return
        }
        var warnings: [String] = []
        let days = CivilDate.days(from: now, to: made.notAfter)
        if made.notAfter < now {
            warnings.append(
                "\(quoted(files.path)) has expired: servers will refuse it; renew it")
        } else if days < Self.daysToEnd {
            warnings.append("\(quoted(files.path)) expires in \(days) days; renew it")
        }
        if made.notBefore > now { warnings.append("\(quoted(files.path)) is not valid yet") }
        if !made.isForClients {
            warnings.append(
                "\(quoted(files.path)) is not a client certificate (by its extended key usage or "
                    + "key usage): servers will refuse it")
        }
        self = .usable(warnings: warnings)
    }
}
