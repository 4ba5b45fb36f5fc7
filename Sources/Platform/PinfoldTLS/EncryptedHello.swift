import COpenSSL

/// Finds out whether a server reads encrypted ClientHellos (RFC 9849): it is sent one that it
/// cannot read (GREASE, §6.2), and one that reads any answers with the keys that it does read
/// (§7.1).
///
/// The library does not know the extension, so it is given to it as another one.
enum EncryptedHello {
    private static let type: UInt32 = 0xFE0D
    private static let contexts = UInt32(
        SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS
            | SSL_EXT_TLS1_3_HELLO_RETRY_REQUEST)

    /// Has the connections of a context look for it. A library that knows the extension refuses:
    /// then ``isOffered(in:by:)`` is false.
    static func offer(in context: OpaquePointer) {
        _ = SSL_CTX_add_custom_ext(
            context, type, contexts,
            { _, _, _, start, count, _, _, _, _ in
                start?.pointee = EncryptedHello.content.start
                count?.pointee = EncryptedHello.content.count
                return 1
            }, nil, nil,
            { ssl, _, _, _, _, _, _, _, _ in
                TLSClientConnection.from(ssl)?.peerReadsEncryptedHello = true
                return 1
            }, nil)
        ErrorQueue.clear()
    }

    /// Whether a context's connections look for it, of which `ssl` is one.
    static func isOffered(in context: TLSClientContext, by ssl: OpaquePointer) -> Bool {
        context.settings.looksForEncryptedHello
            && SSL_CTX_has_client_custom_ext(SSL_get_SSL_CTX(ssl), type) == 1
    }

    /// What is sent, the same in every connection of the process: a second ClientHello must have
    /// what the first had (RFC 9849 §6.2.1).
    private static let content = Content()

    private struct Content: @unchecked Sendable {
        /// Of the encapsulated key, and of a payload as padded names have it, with its tag.
        private static let keyBytes = 32
        private static let payloadBytes = 160 + 16

        let start: UnsafePointer<UInt8>
        let count: Int

        init() {
            // Outer; HKDF-SHA256 with AES-128-GCM; the number of a configuration.
            var bytes: [UInt8] = [0, 0, 1, 0, 1, Self.random(1)[0], 0, UInt8(Self.keyBytes)]
            bytes += Self.random(Self.keyBytes)
            bytes += [0, UInt8(Self.payloadBytes)] + Self.random(Self.payloadBytes)
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count)
            memory.initialize(from: bytes, count: bytes.count)
            start = UnsafePointer(memory)
            count = bytes.count
        }

        private static func random(_ count: Int) -> [UInt8] {
            (0..<count).map { _ in .random(in: 0...255) }
        }
    }
}

extension TLSClientConnection {
    /// Offers protocols by ALPN in place of the context's; before the handshake.
    /// - Parameter wire: as the extension has them, each behind its length; empty: none.
    package func offer(applicationProtocols wire: [UInt8]) {
        guard !wire.isEmpty else { return }
        _ = SSL_set_alpn_protos(ssl, wire, UInt32(wire.count))
        ErrorQueue.clear()
    }
}
