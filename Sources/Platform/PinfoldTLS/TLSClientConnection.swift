import COpenSSL
import Clocks
import HTTPCore
import Trust

/// The client's side of a TLS connection: verifies the server, and resumes sessions.
package final class TLSClientConnection: TLSConnection {
    package let context: TLSClientContext
    private let sessionKey: TLSSessionCache.Key
    /// The client whose share its sessions count towards, or `nil` if none.
    package let client: IPNetwork?
    /// The findings of the full handshake of the session offered for resumption.
    let offeredFacts: TrustFacts?
    /// The server's certificate in that handshake.
    private let offeredLeaf: StoredSession.Leaf?

    /// What was found about the server; `nil` until the handshake has verified it.
    package private(set) var facts: TrustFacts?
    /// When what was found about the server expires, or about a proxy whose session carries this
    /// one, in seconds since 1970; `nil` if never.
    package var trustEnds: Int64? {
        [facts?.expires, (outer as? TLSClientConnection)?.trustEnds].compactMap { $0 }.min()
    }
    /// When the server's certificate ends, in seconds since 1970; `nil` before the handshake.
    package var certificateEnd: Int64? {
        if let leaf = SSL_get0_peer_certificate(ssl) { return X509View(leaf).notAfter }
        return isResumed ? offeredLeaf?.end : nil
    }

    /// The server's own certificate in DER; `nil` before the handshake.
    package var certificateDER: [UInt8]? {
        if let leaf = SSL_get0_peer_certificate(ssl) { return X509View(leaf).der }
        return isResumed ? offeredLeaf?.der : nil
    }

    /// All certificates that the server sent in DER, the leaf first, as the library has kept them;
    /// at most 100. What was verified is among them.
    package var sentCertificates: [[UInt8]] {
        guard let leaf = certificateDER else { return [] }
        var all = [leaf]
        // The library's list begins with the leaf.
        let sent = SSL_get_peer_cert_chain(ssl)
        for index in 1..<max(1, min(pinfold_sk_X509_num(sent), Int32(Self.presentedAtMost))) {
            if let der = pinfold_sk_X509_value(sent, index).flatMap({ X509View($0).der }) {
                all.append(der)
            }
        }
        return all
    }

    /// The certificates that the server sent in DER, the leaf first, unverified; empty unless the
    /// policy objected to them, or the context's settings keep them.
    package private(set) var presented: [[UInt8]] = []

    /// Releases ``presented``.
    package func forgetPresented() { presented = [] }

    /// The certificates that the server sent in this handshake in DER, its own first; only its own
    /// if the session was resumed. They are encoded anew each time.
    package func sentCertificates(atMost most: Int) -> [[UInt8]] {
        guard let sent = SSL_get_peer_cert_chain(ssl), pinfold_sk_X509_num(sent) > 0 else {
            return certificateDER.map { [$0] } ?? []
        }
        return (0..<min(pinfold_sk_X509_num(sent), Int32(clamping: most))).compactMap {
            pinfold_sk_X509_value(sent, $0).flatMap { X509View($0).der }
        }
    }

    /// The chain that the policy accepted in DER, the server's own certificate first; empty unless
    /// the context's settings keep it, and if the policy requires no valid chain.
    package private(set) var verified: [[UInt8]] = []

    /// Whether the server has shown that it supports encrypted ClientHellos, or may support them
    /// without showing it.
    package internal(set) var peerReadsEncryptedHello = true

    /// Verifies the server's OCSP response; `nil` once that has succeeded, or if none is required.
    var stapleVerifier: StapleVerifier?

    /// Whether the server has requested the client's certificate.
    package internal(set) var isAskedForCertificate = false
    /// The identity that was provided when requested; `.some(nil)` for none.
    var answeredIdentity: TLSClientIdentity??
    /// The Certificate Transparency timestamps received so far.
    var timestamps = ServerTimestamps()
    /// Whether the verdict waits for the stapled OCSP response, which arrives after the
    /// certificates.
    private(set) var awaitsStaple = false

    /// Prepares a connection; nothing is sent before `handshake()`.
    ///
    /// - Parameters:
    ///   - context: the policy in force.
    ///   - fileDescriptor: the socket.
    ///   - host: the requested name or address, which the certificate must name; a name is also
    ///     sent as SNI. In any case, with or without a final dot or brackets.
    ///   - port: the server's port; together with the host it identifies the server's sessions.
    ///   - now: seconds since 1970, to determine which sessions can still be resumed.
    ///   - outer: the session over the socket that carries this one, open and read by nobody else;
    ///     `nil` if the socket carries it directly.
    ///   - client: the client whose request it is made for, and whose share its sessions count
    ///     towards.
    ///   - offer: the protocols to offer by ALPN instead of the context's; `nil` for those.
    package init(
        context: TLSClientContext, fileDescriptor: Int32, host: String, port: UInt16, now: Int64,
        outer: TLSConnection? = nil, client: IPNetwork? = nil, offer: ProtocolOffer? = nil
    ) throws(TLSError) {
        let host = TrustVerifier.normalized(host)
        let key = TLSSessionCache.Key(
            context: context.identity, host: host, port: port, offer: offer)
        self.context = context
        sessionKey = key
        self.client = client
        let session = context.sessions?.take(for: key, now: now)
        (offeredFacts, offeredLeaf) = (session?.facts, session?.stored.leaf)
        let library: OpaquePointer
        do throws(TLSContextError) { library = try context.library() } catch {
            throw .resources("\(error)")
        }
        try super.init(context: library, fileDescriptor: fileDescriptor, outer: outer)
        SSL_set_connect_state(ssl)
        if let session { self.offer(session) }
        if let offer { self.offer(applicationProtocols: offer.wire) }
        peerReadsEncryptedHello = !EncryptedHello.isOffered(in: context, by: ssl)
        guard !host.isEmpty, !TLSClientConnection.isAddress(host) else { return }
        guard pinfold_SSL_set_host_name(ssl, host) == 1 else {
            throw .resources(ErrorQueue.drain())
        }
    }

    /// The connection that owns a library object, for use inside callbacks.
    static func from(_ ssl: OpaquePointer?) -> TLSClientConnection? {
        guard let ssl, let data = pinfold_SSL_get_app_data(ssl) else { return nil }
        return Unmanaged<TLSClientConnection>.fromOpaque(data).takeUnretainedValue()
    }

    /// The settings that the connection was made with.
    package var settings: TLSClientSettings { context.settings }

    /// Whether a session of an earlier connection is offered for resumption.
    package var offersSession: Bool { offeredFacts != nil }

    override func objection() -> TLSError? {
        // A resumed handshake verifies nothing: that happened when the session was established.
        if facts == nil, isResumed { facts = offeredFacts }
        return facts == nil || stapleVerifier != nil ? .unauthenticated : nil
    }

    override func meaning(of error: TLSError) -> TLSError { certificateMeaning(of: error) }

    /// A server that speaks clear text answers a ClientHello in clear text, or not at all.
    override func ending(by error: TLSError) -> TLSError {
        let hasNothing = BIO_number_read(SSL_get_rbio(ssl)) == 0
        switch error {
        case .notTLS:
            return socket.pointee.clearTextLine.map { .clearText($0) } ?? error
        case .truncated where hasNothing: return .unanswered(errorNumber: nil)
        case .transport(let number) where hasNothing && [ECONNRESET, EPIPE].contains(number):
            return .unanswered(errorNumber: number)
        default: return error
        }
    }

    private static func isAddress(_ host: String) -> Bool {
        let bytes = Array(host.utf8)
        return IPAddress(literal: bytes.span) != nil
    }
}

// MARK: - Verification

extension TLSClientConnection {
    /// The maximum number of a server's certificates that are kept.
    private static let presentedAtMost = 100

    /// Limits the verdict's validity to `end`, in seconds since 1970.
    func limitTrust(to end: Int64) { facts?.limit(to: end) }

    private func keepPresented(_ storeContext: OpaquePointer, _ leaf: OpaquePointer) {
        guard presented.isEmpty else { return }
        presented = X509View(leaf).der.map { [$0] } ?? []
        let sent = X509_STORE_CTX_get0_untrusted(storeContext)
        for index in 0..<min(pinfold_sk_X509_num(sent), Int32(Self.presentedAtMost)) {
            guard let der = pinfold_sk_X509_value(sent, index).flatMap({ X509View($0).der })
            else { continue }
            // The library's list begins with the leaf.
            if index > 0 || der != presented.first { presented.append(der) }
        }
    }

    private func keepVerified(_ chain: CertificateStack?) {
        guard let chain else { return }
        verified = (0..<chain.count).compactMap { chain[$0].flatMap { X509View($0).der } }
    }

    /// Applies the policy to the certificates that the server sent. Called by the library.
    func verify(_ storeContext: OpaquePointer) -> Bool {
        guard let certificate = X509_STORE_CTX_get0_cert(storeContext),
            var evidence = PeerEvidence(
                certificate: certificate,
                sent: X509_STORE_CTX_get0_untrusted(storeContext), verifier: context.verifier)
        else {
            X509_STORE_CTX_set_error(storeContext, X509_V_ERR_OUT_OF_MEM)
            return false
        }
        if context.settings.keepsPresented { keepPresented(storeContext, certificate) }
        timestamps.status = staple
        let code = verify(&evidence, mayWait: SSL_version(ssl) < TLS1_3_VERSION)
        // A verdict that is still pending may turn into a refusal.
        if facts.map(\.isReported) ?? true { keepPresented(storeContext, certificate) }
        X509_STORE_CTX_set_error(storeContext, code)
        return code == X509_V_OK
    }

    /// Applies the policy; returns the library's code for the verdict.
    ///
    /// - Parameter mayWait: whether the stapled OCSP response is yet to arrive.
    private func verify(_ evidence: inout PeerEvidence, mayWait: Bool) -> Int32 {
        let verdict = context.verifier.verdict(
            &evidence, host: sessionKey.host, now: Clock.wallSeconds(),
            timestamps: timestamps)
        if context.settings.requiresStaple { stapleVerifier = evidence.stapleVerifier }
        switch verdict {
        case .trusted(let found):
            facts = found
            if context.settings.keepsVerified { keepVerified(evidence.accepted) }
            return X509_V_OK
        case .refused(let failure):
            if mayWait, case .transparency = failure.reason {
                awaitsStaple = true
                return X509_V_OK
            }
            finding = .trust(failure)
            return failure.alertCode
        }
    }

    /// Verifies what could not be verified without the stapled OCSP response, if anything. Called
    /// by the library when the server's flight is complete, with or without a response.
    func verifyWithStaple() -> Bool {
        guard awaitsStaple else { return true }
        awaitsStaple = false
        timestamps.status = staple
        guard let certificate = SSL_get0_peer_certificate(ssl),
            var evidence = PeerEvidence(
                certificate: certificate, sent: SSL_get_peer_cert_chain(ssl),
                verifier: context.verifier)
        else { return false }
        let isTrusted = verify(&evidence, mayWait: false) == X509_V_OK
        if facts?.isReported == false, !context.settings.keepsPresented { presented = [] }
        return isTrusted
    }
}

extension TrustError {
    /// The library's code that makes it send the fitting alert.
    var alertCode: Int32 {
        switch reason {
        case .chain(let failure): failure.alertCode
        case .noPinMatches, .pinsetWithoutPins, .invalidPolicy, .pinsetExpired, .transparency:
            X509_V_ERR_APPLICATION_VERIFICATION
        }
    }
}

// MARK: - Sessions

extension TLSClientConnection {
    /// Sessions with a longer encoded form are not kept: a server chooses the size of its tickets.
    private static let sessionBytes = 16 * 1024

    private func offer(_ session: TLSSessionCache.Session) {
        // Without a session the handshake is a full one, which is never wrong.
        if let decoded = session.stored.decoded() {
            SSL_set_session(ssl, decoded)
            SSL_SESSION_free(decoded)
        }
        ErrorQueue.clear()
    }

    /// Keeps a session offered by the server, if the server is trusted. Called by the library.
    func keep(_ session: OpaquePointer?) {
        guard let session, let cache = context.sessions, failure == nil,
            let facts = facts ?? (isResumed ? offeredFacts : nil),
            SSL_SESSION_is_resumable(session) == 1
        else { return }
        let isSingleUse = SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION
        let hint = Int64(clamping: SSL_SESSION_get_ticket_lifetime_hint(session))
        // A ticket without a lifetime: to be discarded in TLS 1.3 (RFC 8446 §4.6.1), unspecified
        // before (RFC 5077 §3.3).
        guard hint > 0 || !isSingleUse else { return }
        var lifetime = min(cache.limits.lifetimeSeconds, Int64(SSL_SESSION_get_timeout(session)))
        if hint > 0 { lifetime = min(lifetime, hint) }
        let expires = min(Int64(SSL_SESSION_get_time(session)) + lifetime, facts.expires ?? .max)
        guard let stored = StoredSession(session, leaf: isResumed ? offeredLeaf : nil),
            stored.count <= TLSClientConnection.sessionBytes
        else { return }
        cache.insert(
            TLSSessionCache.Session(
                stored: stored, expires: expires, isSingleUse: isSingleUse, facts: facts),
            for: sessionKey, of: client)
    }
}
