import COpenSSL

/// Finds out whether a server supports encrypted ClientHellos (RFC 9849). It is sent one that it
/// cannot decrypt (GREASE, §6.2); a server that supports them answers with the keys that it can use
/// (§7.1).
///
/// The library does not know the extension, so it is added as a custom one.
enum EncryptedHello {
    private static let type: UInt32 = 0xFE0D
    private static let contexts = UInt32(
        SSL_EXT_CLIENT_HELLO | SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS
            | SSL_EXT_TLS1_3_HELLO_RETRY_REQUEST)

    /// Makes the connections of a context probe for it. A library that knows the extension refuses;
    /// ``isOffered(in:by:)`` is then `false`.
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

    /// Whether a context's connections, of which `ssl` is one, probe for it.
    static func isOffered(in context: TLSClientContext, by ssl: OpaquePointer) -> Bool {
        context.settings.looksForEncryptedHello
            && SSL_CTX_has_client_custom_ext(SSL_get_SSL_CTX(ssl), type) == 1
    }

    /// The extension's content, the same in every connection of the process: a second ClientHello
    /// must contain what the first did (RFC 9849 §6.2.1).
    private static let content = Content()

    private struct Content: @unchecked Sendable {
        /// The size of the encapsulated key, and of a payload for padded names, with its tag.
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
    /// Offers these protocols by ALPN instead of the context's; call before the handshake.
    /// - Parameter wire: the protocols as encoded in the extension, each preceded by its length;
    ///   empty for none.
    package func offer(applicationProtocols wire: [UInt8]) {
        wire.withUnsafeBufferPointer { offer(applicationProtocols: $0) }
    }

    func offer(applicationProtocols wire: UnsafeBufferPointer<UInt8>) {
        guard !wire.isEmpty else { return }
        _ = SSL_set_alpn_protos(ssl, wire.baseAddress, UInt32(wire.count))
        ErrorQueue.clear()
    }
}
