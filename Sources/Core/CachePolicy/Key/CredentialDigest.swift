import COpenSSL

/// What a key has of credentials: their SHA-256 (FIPS 180-4). The key is written to the disk, where
/// the credentials themselves are not to be found.
///
/// A stored response answers requests with the same digest. Nobody may be able to make credentials
/// that share one with somebody else's, so nothing weaker will do. It takes no key: the next
/// process would need it, so it would lie beside the database, and those who can read that can read
/// the stored responses, too. A password that can be guessed can thus be guessed from it.
enum CredentialDigest {
    /// The digest of a field's value, 32 bytes; nil only if the library is out of memory.
    static func of(_ value: Span<UInt8>) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        let isDone = value.withUnsafeBufferPointer {
            SHA256($0.baseAddress, $0.count, &digest) != nil
        }
        return isDone ? digest : nil
    }
}
