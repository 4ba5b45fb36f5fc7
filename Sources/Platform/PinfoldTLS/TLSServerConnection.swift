import COpenSSL
import Clocks
import Trust

/// The server's side of a TLS connection: proves its identity, and requests a certificate if its
/// context has roots for clients.
///
/// Renegotiation is refused with an alert; the connection continues unchanged.
///
///     asked ──► later ──── answer(_:) ───► answered
///       └──────── at once ────────────────────▲
package final class TLSServerConnection: TLSConnection {
    private enum Identity {
        case unasked
        /// The source will answer later.
        case awaited(TLSClientHello)
        case answered(TLSIdentityAnswer, TLSClientHello)
    }

    /// The context that the connection was made with; the library's callbacks refer to it.
    let context: TLSServerContext
    private let source: (any TLSIdentitySource)?
    private let sessionScope: String
    /// The protocols that are selected from, instead of the context's; `nil` for those.
    let offer: ProtocolOffer?
    private var identity = Identity.unasked

    /// The settings that the connection was made with.
    package var settings: TLSServerSettings { context.settings }

    /// Prepares a connection; nothing is sent before `handshake()`.
    ///
    /// - Parameters:
    ///   - context: the settings and the source of certificates in force.
    ///   - fileDescriptor: the socket.
    ///   - outer: the session over it that carries this one, open and read by nobody else; `nil` if
    ///     the socket carries it directly.
    ///   - source: asked for a certificate instead of the context's source.
    ///   - sessionScope: what its sessions are limited to in addition to the context's scope, such
    ///     as the authority that a tunnel was opened to.
    ///   - offer: the protocols that are selected from, instead of the context's, which must use
    ///     ALPN; `nil` for the context's.
    package init(
        context: TLSServerContext, fileDescriptor: Int32, outer: TLSConnection? = nil,
        source: (any TLSIdentitySource)? = nil, sessionScope: String = "",
        offer: ProtocolOffer? = nil
    ) throws(TLSError) {
        self.context = context
        self.offer = offer
        self.source = source
        self.sessionScope = sessionScope
        try super.init(context: context.context, fileDescriptor: fileDescriptor, outer: outer)
        SSL_set_accept_state(ssl)
        // One record's worth, until the client has shown that it is serious.
        SSL_set_default_read_buffer_len(ssl, 0)
        socket.pointee.gauge = ClientHelloGauge()
    }

    /// The approximate memory of a connection in the middle of its handshake.
    package static let handshakeBytes = 32 * 1024

    override func objection() -> TLSError? {
        SSL_set_default_read_buffer_len(ssl, LibraryContext.receiveBytes)
        socket.pointee.gauge = nil
        return nil
    }

    /// The connection that owns a library object, for use inside callbacks.
    static func from(_ ssl: OpaquePointer?) -> TLSServerConnection? {
        guard let ssl, let data = pinfold_SSL_get_app_data(ssl) else { return nil }
        return Unmanaged<TLSServerConnection>.fromOpaque(data).takeUnretainedValue()
    }

    // MARK: The ClientHello

    /// The contents of the client's first message; `nil` until all of it has arrived.
    package var clientHello: TLSClientHello? {
        switch identity {
        case .unasked: nil
        case .awaited(let hello), .answered(_, let hello): hello
        }
    }

    /// The subject of the client's certificate in the order of RFC 2253, printable ASCII only;
    /// `nil` for none.
    package var clientSubject: String? {
        guard isOpen else { return nil }
        return SSL_get0_peer_certificate(ssl).map { X509View($0).distinguishedName }
    }

    // MARK: Its certificate

    /// Provides the answer that the source has deferred; `handshake()` then continues. Answering a
    /// connection that is broken by now, or that already has its answer, has no effect.
    package func answer(_ answer: TLSIdentityAnswer) {
        guard case .awaited(let hello) = identity else { return }
        if case .later = answer { return }
        identity = .answered(answer, hello)
    }

    /// Handles the client's first message: the second of two if it had to resend it, or the first
    /// again after `.wantIdentity`. Called by the library.
    func receivedHello(_ alert: UnsafeMutablePointer<Int32>?) -> Int32 {
        switch identity {
        case .unasked:
            let hello = TLSClientHello(ssl)
            if !TLSClientHello.takesTickets(ssl) { SSL_set_num_tickets(ssl, 0) }
            socket.pointee.gauge?.endsAtCipherChange = !hello.versions.contains(.tls13)
            // The source may answer through `answer(_:)` before it returns.
            identity = .awaited(hello)
            let answer = (source ?? context.source).identity(for: hello, on: self)
            self.answer(answer)
        case .awaited: break
        case .answered(_, let hello):
            // The first one was answered: what the answer depended on must not change (§4.1.2).
            guard TLSClientHello(ssl) == hello else {
                alert?.pointee = Int32(TLSAlert.illegalParameter.code)
                finding = .identityRefused(.illegalParameter)
                return SSL_CLIENT_HELLO_ERROR
            }
        }
        guard case .answered(let answer, let hello) = identity else {
            return SSL_CLIENT_HELLO_RETRY
        }
        return go(on: answer, hello, alert)
    }

    private func go(
        on answer: TLSIdentityAnswer, _ hello: TLSClientHello,
        _ alert: UnsafeMutablePointer<Int32>?
    ) -> Int32 {
        switch answer {
        case .present(let identity):
            guard identity.isPresented(by: ssl), bindSessions(to: hello.serverName) else {
                alert?.pointee = Int32(TLSAlert.internalError.code)
                finding = .resources(ErrorQueue.drain())
                return SSL_CLIENT_HELLO_ERROR
            }
            return SSL_CLIENT_HELLO_SUCCESS
        case .refuse(let refusal):
            alert?.pointee = Int32(refusal.code)
            finding = .identityRefused(refusal)
            return SSL_CLIENT_HELLO_ERROR
        case .later: return SSL_CLIENT_HELLO_RETRY
        }
    }

    /// The certificate status from its authority, for a client that requests it (RFC 6066 §8),
    /// while it is valid: an outdated one is worse than none. Called by the library.
    func staple() -> Int32 {
        guard case .answered(.present(let identity), _) = identity, let staple = identity.staple,
            identity.stapleEnd ?? .max > Clock.wallSeconds()
        else { return SSL_TLSEXT_ERR_NOACK }
        guard let copy = CRYPTO_malloc(staple.count, nil, 0) else { return SSL_TLSEXT_ERR_NOACK }
        staple.withUnsafeBytes { bytes in
            UnsafeMutableRawBufferPointer(start: copy, count: bytes.count).copyMemory(from: bytes)
        }
        // The library takes ownership.
        _ = pinfold_SSL_set_tlsext_status_ocsp_resp(
            ssl, copy.assumingMemoryBound(to: UInt8.self), staple.count)
        return SSL_TLSEXT_ERR_OK
    }

    // MARK: Its sessions

    /// Allows sessions to be resumed only in the same scope and under the same name.
    private func bindSessions(to name: String?) -> Bool {
        let parts = [settings.sessionScope, sessionScope, name ?? ""]
        let scope = Array(parts.joined(separator: "\0").utf8)
        guard let digest = SHA256Digest(hashing: scope.span) else { return false }
        let bytes = digest.bytes
        return SSL_set_session_id_context(ssl, bytes, UInt32(bytes.count)) == 1
    }

    // MARK: The client's certificate

    /// Records why the client's certificate is refused, as the library's error code.
    func refuseCertificate(_ code: Int32) {
        finding = .clientCertificate(String(cString: X509_verify_cert_error_string(Int(code))))
    }
}
