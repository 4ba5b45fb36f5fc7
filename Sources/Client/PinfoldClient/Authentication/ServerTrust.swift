import PinfoldEngine
import PinfoldTLS
import Trust

/// What a server has proved in the TLS handshake, accepted by the session's ``SecurityPolicy``
/// (`SecTrust`).
public struct ServerTrust: Sendable, Hashable {
    /// The verified chain in DER, from the server's own certificate up to the trust anchor,
    /// regardless of what else the server has sent. Only the server's own certificate if the policy
    /// does not require a valid chain.
    public let certificates: [[UInt8]]
    /// A pin for the key of each certificate, in the format of ``CertificatePin``: `sha256/…`.
    public let pins: [String]

    init(certificates: [[UInt8]]) {
        self.certificates = certificates
        pins = certificates.map { der in
            (try? CertificateInspection(certificate: der))?.identity.key.keyPinText ?? ""
        }
    }

    /// Calls a hook to confirm the trust in each server, and for the certificate that it requests.
    static func reviewer(_ hook: @escaping ChallengeHook) -> ServerReviewer {
        { server, answer in
            let task = Task { answer(await review(server, hook)) }
            return { task.cancel() }
        }
    }

    private static func review(
        _ server: ReviewedServer, _ hook: ChallengeHook
    ) async -> ReviewAnswer {
        let space = ProtectionSpace(server)
        let trust = ServerTrust(certificates: server.certificates)
        let trustChallenge = AuthenticationChallenge(
            protectionSpace: space, method: .serverTrust, serverTrust: trust)
        guard await hook(trustChallenge) == .performDefaultHandling else { return .refused }
        guard let authorities = server.acceptedAuthorities else { return .trusted(nil) }
        let challenge = AuthenticationChallenge(
            protectionSpace: space, method: .clientCertificate, serverTrust: trust,
            acceptedAuthorities: authorities)
        switch await hook(challenge) {
        case .useCertificate(let certificate):
            return .trusted(certificate.identity(for: server))
        case .cancel: return .refused
        case .useCredential, .performDefaultHandling, .rejectProtectionSpace: return .trusted(nil)
        }
    }
}

extension ClientCertificate {
    /// The identity to present to a server, or `nil` if the certificate is for other hosts.
    fileprivate func identity(for server: ReviewedServer) -> TLSClientIdentity? {
        guard patterns.contains(where: { $0.matches(host: server.host, port: server.port) }) else {
            return nil
        }
        return try? TLSClientIdentity(chainPEM: identity.chain, keyPEM: identity.key)
    }
}

extension ProtectionSpace {
    /// The protection space of a server, without a realm.
    init(_ server: ReviewedServer) {
        self.init(
            scheme: "https", host: server.host, port: server.port, realm: "", isProxy: false)
    }
}
