import COpenSSL

// The results of a handshake.

extension TLSConnection {
    /// The name sent as SNI, or `nil` for none. For a server's connection: what its client sent,
    /// verbatim, once the handshake has read it.
    package final var serverName: String? {
        SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    }

    /// The version in use; `nil` before the handshake.
    package final var version: TLSVersion? {
        guard isOpen else { return nil }
        return TLSVersion.allCases.first { $0.number == SSL_version(ssl) }
    }

    /// The cipher suite's name; `nil` before the handshake.
    package final var cipherSuite: String? {
        guard isOpen, let name = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)) else {
            return nil
        }
        return String(cString: name)
    }

    /// Whether the handshake resumed a session.
    package final var isResumed: Bool { pinfold_SSL_session_reused(ssl) == 1 }

    /// The protocol selected by ALPN, or `nil` if none was.
    package final var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count > 0 else { return nil }
        let name = UnsafeBufferPointer(start: start, count: Int(count))
        return String(decoding: name, as: UTF8.self)
    }
}
