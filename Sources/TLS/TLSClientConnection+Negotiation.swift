import COpenSSL

// What the client offers in a handshake, and what came of it.

extension TLSClientConnection {
    /// What the connection is made under.
    package var settings: TLSClientSettings { context.settings }

    /// The name that is sent as SNI; nil for an address, which is not sent.
    package var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    /// Whether a session of an earlier connection is offered for resumption.
    package var offersSession: Bool { offeredFacts != nil }

    /// Whether the handshake resumed a session.
    package var isResumed: Bool { pinfold_SSL_session_reused(ssl) == 1 }

    /// The version in use; nil before the handshake.
    package var version: TLSVersion? {
        guard isOpen else { return nil }
        return TLSVersion.allCases.first { $0.number == SSL_version(ssl) }
    }

    /// The cipher suite's name; nil before the handshake.
    package var cipherSuite: String? {
        guard isOpen, let name = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)) else {
            return nil
        }
        return String(cString: name)
    }

    /// What ALPN selected; nil if the server selected nothing.
    package var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count > 0 else { return nil }
        let name = UnsafeBufferPointer(start: start, count: Int(count))
        return String(decoding: name, as: UTF8.self)
    }
}
