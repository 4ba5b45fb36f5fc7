import COpenSSL
import HTTPCore

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

    /// What the connection carries by the protocol that ALPN selected: HTTP/1 if none was. To be
    /// asked after the handshake, as often as one likes: there is no String.
    package final var carrier: HTTPCarrier {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &start, &count)
        guard let start, count == 2, start[0] == UInt8(ascii: "h"), start[1] == UInt8(ascii: "2")
        else { return .http1 }
        return .http2
    }

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
