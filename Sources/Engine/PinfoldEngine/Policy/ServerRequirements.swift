import PinfoldConfiguration
import PinfoldTLS
import Trust

/// What a server must prove under one configuration. After a reload, it shows whether a connection
/// that is still open was allowed by the same requirements.
struct ServerRequirements: Hashable, Sendable {
    private let digest: SHA256Digest
    /// The version of the system's roots, if they are trusted.
    private let systemRoots: SystemRootsVersion?

    init(
        _ tls: UpstreamTLS, _ pinsets: [Pinset], systemRoots: SystemRootsVersion
    ) throws(TLSContextError) {
        var form = TrustForm()
        var proved = tls
        // The gateway's own identity is not something that the server must prove.
        proved.clientIdentity = nil
        form.add(proved)
        form.add(pinsets.count)
        for pinset in pinsets { form.add(pinset) }
        guard let digest = SHA256Digest(hashing: form.bytes.span) else {
            throw .library("SHA-256 failed")
        }
        self.digest = digest
        self.systemRoots = tls.roots.contains(.system) ? systemRoots : nil
    }
}

/// The requirements of one configuration, by host entry.
struct ServerRequirementsTable: Sendable {
    private let entries: [ServerRequirements]
    private let defaults: ServerRequirements

    init(
        _ configuration: ConfigurationSnapshot, systemRoots: SystemRootsVersion
    ) throws(TLSContextError) {
        var made: [ServerRequirements] = []
        for entry in configuration.hosts.entries {
            made.append(
                try ServerRequirements(
                    entry.tls, entry.pinsets.map { configuration.pinsets[$0].pinset },
                    systemRoots: systemRoots))
        }
        entries = made
        defaults = try ServerRequirements(configuration.tls, [], systemRoots: systemRoots)
    }

    /// - Parameter entry: the index of the host entry; `nil` if none matches.
    func of(entry: Int?) -> ServerRequirements { entry.map { entries[$0] } ?? defaults }
}
