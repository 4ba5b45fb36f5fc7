import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// How the clients of a listener speak TLS under one configuration: what was written, and what was
/// made of it.
package struct ClientTLS: Sendable {
    package let configuration: ListenerTLS
    package let context: TLSServerContext

    /// - Parameters:
    ///   - scope: what sessions are bound to, and not resumed elsewhere.
    ///   - ticketKeys: nil: no session is resumed.
    /// - Throws: for certificates, keys and roots that cannot be used.
    init(
        _ configuration: ListenerTLS, scope: String, ticketKeys: TLSTicketKeys?
    ) throws(TLSContextError) {
        var identities: [TLSServerIdentity] = []
        for certificate in configuration.certificates {
            do throws(TLSIdentityError) {
                identities.append(
                    try TLSServerIdentity(
                        chainPEM: certificate.chain, keyPEM: certificate.key,
                        staple: certificate.staple))
            } catch {
                throw .identity(error)
            }
        }
        guard !identities.isEmpty else { throw .identity(.noCertificate) }
        var settings = TLSServerSettings()
        settings.minimumVersion = TLSVersion(text: configuration.minimum.rawValue) ?? .tls12
        settings.sessionScope = scope
        context = try TLSServerContext(
            settings, source: TLSIdentityList(identities),
            clientRoots: try Self.roots(configuration.clientRoots), ticketKeys: ticketKeys)
        for identity in identities { try context.require(identity) }
        self.configuration = configuration
    }

    private static func roots(
        _ sources: [ConfiguredRoots]
    ) throws(TLSContextError) -> LoadedRoots? {
        guard !sources.isEmpty else { return nil }
        let files = sources.flatMap { source -> [RootSource] in
            switch source {
            case .system: [.system]
            case .file(let path, let certificates):
                certificates.map { .file(name: path, contents: $0) }
            }
        }
        return try LoadedRoots(files)
    }
}

/// What a client's handshake has told.
package final class ClientSession: Sendable {
    /// The version that is spoken.
    package let version: TLSVersion
    /// The cipher suite, as the library calls it.
    package let cipherSuite: [UInt8]
    /// The subject of the certificate that the client has proved itself with, printable ASCII;
    /// nil for none.
    package let subject: String?
    /// The same as bytes; empty for none.
    package let subjectBytes: [UInt8]
    /// `host:port` that the client's tunnel was opened to, if this is the TLS inside one; else
    /// empty.
    package let tunnelBytes: [UInt8]

    /// These values.
    /// - Parameter tunnel: what the client's tunnel was opened to, if the connection is inside one.
    package init(
        version: TLSVersion, cipherSuite: String, subject: String?,
        inTunnelTo tunnel: BoundAuthority? = nil
    ) {
        self.version = version
        self.cipherSuite = Array(cipherSuite.utf8)
        self.subject = subject
        subjectBytes = Array((subject ?? "").utf8)
        tunnelBytes = tunnel.map { Array("\($0)".utf8) } ?? []
    }

    /// Of a connection whose handshake is over.
    /// - Parameter outer: of the connection that the tunnel is in: its client is the same.
    package convenience init(
        _ connection: TLSServerConnection, inTunnelTo tunnel: BoundAuthority? = nil,
        around outer: ClientSession? = nil
    ) {
        self.init(
            version: connection.version ?? .tls12, cipherSuite: connection.cipherSuite ?? "",
            subject: connection.clientSubject ?? outer?.subject, inTunnelTo: tunnel)
    }
}
