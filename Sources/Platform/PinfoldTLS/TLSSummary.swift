import COpenSSL

/// What a handshake agreed on, and the certificate that the other side presented, for people.
///
/// It is a class so that a `nil` one costs a word wherever times of exchanges are copied.
package final class TLSSummary: Sendable, Hashable {
    package struct Certificate: Sendable, Hashable {
        /// For display: printable ASCII.
        package let subject, issuer: String
        /// DNS names and addresses of the subject alternative names, at most 16.
        package let names: [String]
        /// Seconds since 1970.
        package let notBefore, notAfter: Int64
    }

    private struct Content: Hashable {
        let version: TLSVersion
        let cipherSuite: String
        let isResumed: Bool
        let certificate: Certificate?
    }

    private let content: Content
    package var version: TLSVersion { content.version }
    package var cipherSuite: String { content.cipherSuite }
    /// Whether the handshake resumed a session.
    package var isResumed: Bool { content.isResumed }
    package var certificate: Certificate? { content.certificate }

    fileprivate init(
        _ version: TLSVersion, _ cipherSuite: String, isResumed: Bool, _ certificate: Certificate?
    ) {
        content = Content(
            version: version, cipherSuite: cipherSuite, isResumed: isResumed,
            certificate: certificate)
    }

    package static func == (one: TLSSummary, other: TLSSummary) -> Bool {
        one.content == other.content
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(content) }
}

extension TLSConnection {
    /// The summary; `nil` before the handshake.
    package final var summary: TLSSummary? {
        guard let version, let cipherSuite else { return nil }
        var certificate = SSL_get0_peer_certificate(ssl).map {
            TLSSummary.Certificate(X509View($0))
        }
        // A resumed session has it in its encoded form alone.
        if certificate == nil, let der = (self as? TLSClientConnection)?.certificateDER,
            let parsed = try? Certificate(der: der)
        {
            certificate = TLSSummary.Certificate(X509View(parsed.pointer))
        }
        return TLSSummary(version, cipherSuite, isResumed: isResumed, certificate)
    }
}

extension TLSSummary.Certificate {
    fileprivate init(_ view: X509View) {
        self.init(
            subject: view.subject, issuer: view.issuer, names: view.names.map(\.text),
            notBefore: view.notBefore, notAfter: view.notAfter)
    }
}
