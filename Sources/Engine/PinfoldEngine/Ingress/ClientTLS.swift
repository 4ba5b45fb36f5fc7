import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// TLS with the clients of a listener under one configuration: the settings, and the context made
/// from them.
package struct ClientTLS: Sendable {
    package let configuration: ListenerTLS
    package let context: TLSServerContext

    /// - Parameters:
    ///   - offer: what is selected from by ALPN.
    ///   - scope: what sessions are bound to in addition to the configuration; they are not
    ///     resumed elsewhere, but also by another process.
    ///   - ticketKeys: the keys of session tickets; `nil` if no session is resumed.
    /// - Throws: if certificates, keys or roots cannot be used.
    init(
        _ configuration: ListenerTLS, offer: ProtocolOffer, scope: String,
        ticketKeys: TLSTicketKeys?
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
        settings.applicationProtocols = offer.names
        // Another process may find other roots in the system.
        let readsSystem = configuration.clientRoots.contains {
            if case .system = $0 { true } else { false }
        }
        let origin = readsSystem ? ticketKeys?.origin ?? "" : ""
        settings.sessionScope = try Self.sessionScope(configuration, "\(origin)/\(scope)")
        context = try TLSServerContext(
            settings, source: TLSIdentityList(identities),
            clientRoots: try Self.roots(configuration.clientRoots),
            requiresCertificates: configuration.clientCertificates == .required,
            ticketKeys: ticketKeys)
        for identity in identities { try context.require(identity) }
        self.configuration = configuration
    }

    /// The same in every process, and different as soon as a full handshake might end otherwise.
    private static func sessionScope(
        _ configuration: ListenerTLS, _ scope: String
    ) throws(TLSContextError) -> String {
        var form = TrustForm()
        form.add("sessions of clients 1".utf8)
        form.add(scope.utf8)
        form.add(configuration)
        return "\(try TrustFingerprint(form).digest)"
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

/// What is known from a client's handshake.
package final class ClientSession: Sendable {
    /// The TLS version.
    package let version: TLSVersion
    /// What the client speaks by the protocol that was selected.
    package let carrier: HTTPCarrier
    /// The name of the cipher suite in the library.
    package let cipherSuite: [UInt8]
    /// The subject of the client's certificate in printable ASCII; `nil` if it has none.
    package let subject: String?
    /// The same as bytes; empty if there is none.
    package let subjectBytes: [UInt8]
    /// The names in the client's certificate, and the second since 1970 from which it is not valid
    /// any more; `nil` unless its listener asks for them.
    package let certificate: (names: CertificateNames, end: Int64)?
    /// `host:port` that the client's tunnel was opened to, if this is TLS inside a tunnel;
    /// otherwise empty.
    package let tunnelBytes: [UInt8]

    /// Creates a session from values.
    /// - Parameter tunnel: the authority that the client's tunnel was opened to, if the connection
    ///   is inside one.
    package init(
        version: TLSVersion, carrier: HTTPCarrier = .http1, cipherSuite: String, subject: String?,
        certificate: (names: CertificateNames, end: Int64)? = nil,
        inTunnelTo tunnel: BoundAuthority? = nil
    ) {
        self.certificate = certificate
        self.version = version
        self.carrier = carrier
        self.cipherSuite = Array(cipherSuite.utf8)
        self.subject = subject
        subjectBytes = Array((subject ?? "").utf8)
        tunnelBytes = tunnel.map { Array("\($0)".utf8) } ?? []
    }

    /// Creates the session of a connection whose handshake is complete.
    /// - Parameters:
    ///   - readsNames: whether the names in the client's certificate are read.
    ///   - outer: the session of the connection that contains the tunnel: its client is the same.
    package convenience init(
        _ connection: TLSServerConnection, readsNames: Bool = false,
        inTunnelTo tunnel: BoundAuthority? = nil, around outer: ClientSession? = nil
    ) {
        let shown = readsNames ? connection.clientNames : nil
        self.init(
            version: connection.version ?? .tls12, carrier: connection.carrier,
            cipherSuite: connection.cipherSuite ?? "",
            subject: connection.clientSubject ?? outer?.subject,
            // It is valid in the second in which it ends (RFC 5280 §4.1.2.5).
            certificate: shown.map {
                ($0.names, $0.expires.addingReportingOverflow(1).partialValue)
            },
            inTunnelTo: tunnel)
    }
}
