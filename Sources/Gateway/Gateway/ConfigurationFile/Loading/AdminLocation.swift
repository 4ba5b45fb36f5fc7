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
        if let tls = admin.key("tls"), let certificate = tls.key("certificate") {
            location.isSecure = true
            location.certificates = (certificate.elements ?? [certificate])
                .compactMap { $0.filePath() }
        }
        try requireNoErrors(root.validation)
        return location
    }
}
