import COpenSSL

/// A private key on Ed25519 (RFC 8032), by which policies are signed.
package final class Ed25519SigningKey {
    /// Why there is no key.
    package enum KeyError: Error, Sendable, Equatable {
        /// The file has no private key that can be read without a password.
        case unreadable
        /// It is of another kind.
        case otherKind
        /// The library cannot make one.
        case library
    }

    private let key: OpaquePointer
    /// The 32 bytes of the public key.
    package let publicKey: [UInt8]

    /// Makes a key from the system's random numbers.
    package convenience init() throws(KeyError) {
        defer { ERR_clear_error() }
        guard let context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nil) else { throw .library }
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_keygen(context, &made) == 1, let made
        else { throw .library }
        try self.init(owning: made)
    }

    /// - Parameter pem: a file with a private key in PKCS #8, as `openssl genpkey -algorithm
    ///   ed25519` writes it.
    package convenience init(pem: [UInt8]) throws(KeyError) {
        let read = withMemoryBIO(reading: pem) { bio in
            // Without a callback the library would ask for a password on the terminal.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let read else { throw .unreadable }
        try self.init(owning: read)
    }

    private init(owning key: OpaquePointer) throws(KeyError) {
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        let isRead =
            EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519
            && EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1 && count == bytes.count
        ERR_clear_error()
        self.key = key
        publicKey = bytes
        guard isRead else { throw .otherKind }
    }

    deinit { EVP_PKEY_free(key) }

    /// The key in PKCS #8, unencrypted.
    package var pem: [UInt8]? {
        withMemoryBIO { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) == 1 }
    }

    /// The 64 bytes of the signature of some content; `nil` if the library fails.
    package func signature(of content: [UInt8]) -> [UInt8]? {
        guard let context = EVP_MD_CTX_new() else { return nil }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        var signature = [UInt8](repeating: 0, count: 64)
        var count = signature.count
        guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
            EVP_DigestSign(context, &signature, &count, content, content.count) == 1,
            count == signature.count
        else { return nil }
        return signature
    }
}
