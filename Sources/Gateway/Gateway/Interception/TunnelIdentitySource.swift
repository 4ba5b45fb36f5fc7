import EventLoop
import PinfoldEngine
import PinfoldTLS

/// The certificate of one intercepted tunnel: for the host that the tunnel was opened to, whatever
/// else the client requests.
final class TunnelIdentitySource: TLSIdentitySource {
    private let tunnel: InterceptedTunnel
    private let mailbox: Mailbox<WorkerMessage>
    /// The tunnel's connection, once it is registered.
    var clientToken = Token.none

    /// - Parameter mailbox: where an answer goes that takes longer.
    init(_ tunnel: InterceptedTunnel, mailbox: Mailbox<WorkerMessage>) {
        self.tunnel = tunnel
        self.mailbox = mailbox
    }

    func identity(
        for hello: TLSClientHello, on connection: TLSServerConnection
    ) -> TLSIdentityAnswer {
        if hello.namesNoHost { return .refuse(.unrecognizedName) }
        guard case .verified(let server, _) = tunnel.server else {
            return .refuse(.handshakeFailure)
        }
        // A client without SNI means the host of its CONNECT: for an address there is no SNI. Some
        // include the port, which can mean nothing else either.
        if let name = hello.serverName, ReferenceIdentifier(name) != tunnel.name,
            name != "\(tunnel.authority)"
        {
            return .refuse(.unrecognizedName)
        }
        let interception = tunnel.interception
        let request = CertificateRequest(
            authority: interception.authority, name: tunnel.name,
            keyKind: hello.offersECDSA ? .ecdsaP256 : .rsa2048, server: server,
            client: tunnel.account?.network)
        if let identity = interception.issuer.cached(request) { return .present(identity) }
        interception.issuer.issue(request) { [mailbox, clientToken] result in
            mailbox.post(.certificateIssued(clientToken, result))
        }
        return .later
    }
}
