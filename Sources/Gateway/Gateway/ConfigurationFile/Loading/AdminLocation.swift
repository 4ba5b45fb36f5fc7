import HTTPCore
import PinfoldConfiguration

/// How a running gateway's administrative address is reached, according to its configuration file.
package struct AdminLocation: Sendable, Equatable {
    /// Where it listens.
    package var address: ListenAddress
    /// Whether it speaks TLS.
    package var isSecure = false
    /// The absolute path of the token's file; `nil` if there is none.
    package var tokenFile: String?
    /// The absolute paths of the certificates that it presents.
    package var certificates: [String] = []

    /// The default.
    package init() { address = AdminConfiguration().address }
}

extension ConfigurationLoader {
    /// How the administrative address of a file is reached. The rest of the file is not checked,
    /// and none of the files that it names is read: it may be asked for by a user who may not read
    /// them, or about a file that a gateway would refuse.
    package func adminLocation(file: String) throws(ConfigurationErrors) -> AdminLocation {
        let root = try unchecked(file, section: .admin)
        var location = AdminLocation()
        guard let admin = root.key(SectionName.admin.rawValue) else { return location }
        let reader = SnapshotReader(validation: root.validation)
        if let field = admin.key("address"), let named = reader.listenAddress(field) {
            if let passed = named.passed {
                field.fail(
                    "\(passed.text) is known only to the gateway that got the socket",
                    expected: "the address itself, by --admin")
            }
            location.address = named.address
        }
        location.tokenFile = admin.key("tokenFile")?.filePath()
        if let certificates = Self.certificates(of: admin) {
            location.isSecure = true
            location.certificates = certificates
        }
        try requireNoErrors(root.validation)
        return location
    }

    /// The absolute paths of the certificates that the listeners of a file present. What
    /// `adminLocation` does not do, this does not do either.
    package func listenerCertificates(file: String) throws(ConfigurationErrors) -> [String] {
        let root = try unchecked(file, section: .listeners)
        let listeners = root.key(SectionName.listeners.rawValue)?.elements ?? []
        let paths = listeners.flatMap { Self.certificates(of: $0) ?? [] }
        try requireNoErrors(root.validation)
        return paths
    }

    /// The paths in `tls.certificate`; `nil` without that.
    private static func certificates(of field: Field) -> [String]? {
        guard let certificate = field.key("tls")?.key("certificate") else { return nil }
        return (certificate.elements ?? [certificate]).compactMap { $0.filePath() }
    }
}
