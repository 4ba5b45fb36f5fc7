import PinfoldConfiguration
import PinfoldTLS

/// The means of intercepting tunnels under one configuration.
package final class InterceptionPolicy: Sendable {
    package let authority: CertificateAuthority
    package let issuer: CertificateIssuer
    /// The context for clients; each connection has its own source of a certificate.
    package let context: TLSServerContext
    /// Which clients reject the certificates that they are shown.
    package let rejections: RejectionLedger

    /// - Parameters:
    ///   - scope: what sessions are bound to in addition to the tunnel's authority.
    ///   - ticketKeys: the keys of session tickets; `nil` if no session is resumed.
    /// - Returns: `nil` if there is no authority, or nothing to issue certificates with.
    /// - Throws: if the authority cannot be used.
    init?(
        _ configuration: InterceptionConfiguration, issuer: CertificateIssuer?, scope: String,
        ticketKeys: TLSTicketKeys?
    ) throws(TLSContextError) {
        guard let files = configuration.authority, let issuer else { return nil }
        do throws(AuthorityError) {
            authority = try CertificateAuthority(
                certificatePEM: files.certificatePEM, keyPEM: files.keyPEM)
        } catch {
            throw .library("the CA for interception: \(error)")
        }
        self.issuer = issuer
        rejections = RejectionLedger(configuration.rejections)
        var settings = TLSServerSettings()
        settings.applicationProtocols = ProtocolOffer.either.names
        settings.sessionScope = scope
        settings.minimumVersion = TLSVersion(text: configuration.minimum.rawValue) ?? .tls12
        context = try TLSServerContext(settings, source: NoIdentity(), ticketKeys: ticketKeys)
    }

    /// Whether tunnels that were opened under another policy may continue under this one.
    package func admits(tunnelsOf other: InterceptionPolicy) -> Bool {
        context.settings.minimumVersion == other.context.settings.minimumVersion
    }
}

/// A placeholder for a source of certificates: every connection has its own.
private final class NoIdentity: TLSIdentitySource, Sendable {
    func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer { .refuse(.internalError) }
}
