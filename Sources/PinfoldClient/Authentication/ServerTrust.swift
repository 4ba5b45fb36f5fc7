import Engine
import Pinning
import TLS

/// What a server has proved in the TLS handshake, and the session's ``SecurityPolicy`` has accepted
/// (`SecTrust`).
public struct ServerTrust: Sendable, Hashable {
    /// Certificates in DER: the chain that was verified, from the server's own up to the trust
    /// anchor, whatever else the server has sent. The server's own alone where the policy asks for
    /// no valid chain.
    public let certificates: [[UInt8]]
    /// A pin for the key of each, in the form that ``CertificatePin`` reads: `sha256/…`.
    public let pins: [String]

    init(certificates: [[UInt8]]) {
        self.certificates = certificates
        pins = certificates.map { der in
            (try? CertificateInspection(certificate: der))?.identity.key.keyPinText ?? ""
        }
    }

    /// Asks a hook about each server.
    static func reviewer(_ hook: @escaping ChallengeHook) -> ServerReviewer {
        { server, answer in
            let task = Task {
                let challenge = AuthenticationChallenge(
                    space: ProtectionSpace(server), method: .serverTrust, previousFailureCount: 0,
                    refusedCredential: nil, response: nil, request: nil,
                    serverTrust: ServerTrust(certificates: server.certificates))
                answer(await hook(challenge) == .performDefaultHandling)
            }
            return { task.cancel() }
        }
    }
}

extension ProtectionSpace {
    /// The space of a server without a realm.
    init(_ server: ReviewedServer) {
        self.init(
            scheme: "https", host: server.host, port: server.port, realm: "", isProxy: false)
    }
}
