import PinfoldConfiguration
import PinfoldTLS

/// What tunnels are intercepted with under one configuration.
package final class InterceptionPolicy: Sendable {
    package let authority: CertificateAuthority
    package let issuer: CertificateIssuer
    /// How clients are spoken to; each connection brings the source of its certificate.
    package let context: TLSServerContext
    /// Which clients do not accept what they are shown.
    package let rejections: RejectionLedger

    /// - Parameters:
    ///   - scope: what sessions are bound to besides the tunnel's authority.
    ///   - ticketKeys: nil: no session is resumed.
    /// - Returns: nil where there is no authority, or nobody to issue certificates.
    /// - Throws: for an authority that cannot be used.
    init?(
        _ configuration: InterceptionConfiguration, issuer: CertificateIssuer?, scope: String,
        ticketKeys: TLSTicketKeys?
    ) throws(TLSContextError) {
        guard let files = configuration.authority, let issuer else { return nil }
        do throws(AuthorityError) {
            authority = try CertificateAuthority(
                certificatePEM: files.certificatePEM, keyPEM: files.keyPEM)
        } catch {
            throw .library("the interception authority: \(error)")
        }
        self.issuer = issuer
        rejections = RejectionLedger(configuration.rejections)
        var settings = TLSServerSettings()
        settings.sessionScope = scope
        settings.minimumVersion = TLSVersion(text: configuration.minimum.rawValue) ?? .tls12
        context = try TLSServerContext(settings, source: NoIdentity(), ticketKeys: ticketKeys)
    }

    /// Whether what goes on in tunnels that were opened under another policy may go on under this.
    package func admits(tunnelsOf other: InterceptionPolicy) -> Bool {
        context.settings.minimumVersion == other.context.settings.minimumVersion
    }
}

/// In place of a source of certificates: every connection has its own.
private final class NoIdentity: TLSIdentitySource, Sendable {
    func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer { .refuse(.internalError) }
}
