import COpenSSL

/// The credentials that a client presents to servers that request them: its certificate, the
/// certificates that lead to an anchor, and the private key. Immutable; safe to use from any number
/// of threads at once.
package struct TLSClientIdentity: Sendable {
    private let files: TLSServerIdentity

    /// - Parameters:
    ///   - chainPEM: the client's certificate, then those that lead to its anchor.
    ///   - keyPEM: the private key, unencrypted.
    /// - Throws: for anything that cannot be read, for a key that belongs to another certificate,
    ///   and for anything that the library finds too weak.
    package init(chainPEM: [UInt8], keyPEM: [UInt8]) throws(TLSIdentityError) {
        files = try TLSServerIdentity(chainPEM: chainPEM, keyPEM: keyPEM)
        do throws(TLSContextError) {
            let context = try LibraryContext.make(TLS_client_method()) {
                (context) throws(TLSContextError) in
                try present(in: context)
            }
            SSL_CTX_free(context)
        } catch {
            if case .identity(let error) = error { throw error }
            throw .refused("\(error)")
        }
    }

    /// When the certificate ends, in seconds since 1970.
    package var notAfter: Int64 { files.notAfter }
    /// When the certificate begins, in seconds since 1970.
    package var notBefore: Int64 { files.notBefore }

    /// Whether the certificate's extensions allow client authentication (RFC 5280 §4.2.1.12).
    package var isForClients: Bool {
        X509_check_purpose(files.certificate, X509_PURPOSE_SSL_CLIENT, 0) == 1
    }

    /// Makes the connections of a context present it to servers that request it.
    func present(in context: OpaquePointer) throws(TLSContextError) {
        let done = SSL_CTX_use_cert_and_key(
            context, files.certificate, files.key, files.chain.pointer, 1)
        guard done == 1 else { throw .identity(.refused(ErrorQueue.drain())) }
    }

    /// Makes one connection present it.
    fileprivate func present(on ssl: OpaquePointer) {
        // It was usable for a context before: without memory, nothing is presented.
        _ = SSL_use_cert_and_key(ssl, files.certificate, files.key, files.chain.pointer, 1)
        ErrorQueue.clear()
    }
}

extension TLSClientConnection {
    /// Notes servers that request the client's certificate, and asks the caller for one if the
    /// context's settings say so.
    static func noteCertificateRequests(_ context: OpaquePointer) {
        SSL_CTX_set_cert_cb(
            context,
            { ssl, _ in
                guard let connection = TLSClientConnection.from(ssl) else { return 1 }
                connection.isAskedForCertificate = true
                // Negative: the handshake waits.
                return connection.awaitsIdentity ? -1 : 1
            }, nil)
    }

    /// Whether the handshake waits for the client's certificate. An untrusted server never sees
    /// one.
    private var awaitsIdentity: Bool {
        context.settings.asksForIdentity && context.clientIdentity == nil
            && answeredIdentity == nil && !awaitsStaple && objection() == nil
    }

    /// Provides the client's identity, or `nil` for none; the handshake continues at its next call.
    package func answer(_ identity: TLSClientIdentity?) {
        guard answeredIdentity == nil else { return }
        answeredIdentity = .some(identity)
        identity?.present(on: ssl)
    }

    /// The authorities whose certificates the server accepts, according to its request: their names
    /// in DER (RFC 5280 §4.1.2.4); empty if it accepts any.
    package var acceptedAuthorities: [[UInt8]] {
        guard let names = SSL_get0_peer_CA_list(ssl) else { return [] }
        return (0..<pinfold_sk_X509_NAME_num(names)).compactMap { index in
            let name = pinfold_sk_X509_NAME_value(names, index)
            let count = i2d_X509_NAME(name, nil)
            guard count > 0 else { return nil }
            return [UInt8](unsafeUninitializedCapacity: Int(count)) { bytes, written in
                var place = bytes.baseAddress
                written = Int(max(0, i2d_X509_NAME(name, &place)))
            }
        }
    }

    /// The meaning of a server's alert if it is about the client's certificate (RFC 8446 §6.2). In
    /// TLS 1.3 it arrives after the handshake, in place of the first response.
    func certificateMeaning(of error: TLSError) -> TLSError {
        let hasIdentity = context.clientIdentity != nil || (answeredIdentity ?? nil) != nil
        guard case .alertReceived(let code, _) = error, isAskedForCertificate || hasIdentity else {
            return error
        }
        let alert = TLSAlert(code: code)
        // The others are also used for other things, but hardly by a server that has just requested
        // one.
        let isMeant =
            alert.isAboutCertificate || alert == .certificateRequired
            || isAskedForCertificate
                && [.handshakeFailure, .accessDenied, .decryptError].contains(alert)
        guard isMeant else { return error }
        return hasIdentity ? .certificateRejected(alert) : .certificateRequired(alert)
    }
}
