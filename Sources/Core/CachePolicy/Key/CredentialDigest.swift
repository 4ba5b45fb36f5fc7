import COpenSSL

/// How credentials are represented in a key: by their SHA-256 (FIPS 180-4). Keys are written to
/// disk, where the credentials themselves must not be found.
///
/// A stored response answers requests with the same digest. Nobody must be able to find credentials
/// whose digest equals another's, so nothing weaker will do. The hash is not keyed: the next
/// process would need the key, so it would have to be stored next to the database, and anyone who
/// can read that can also read the stored responses. A guessable password can therefore be guessed
/// from its digest.
enum CredentialDigest {
    /// The digest of a field's value, 32 bytes; `nil` only if the library is out of memory.
    static func of(_ value: Span<UInt8>) -> [UInt8]? {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        let isDone = value.withUnsafeBufferPointer {
            SHA256($0.baseAddress, $0.count, &digest) != nil
        }
        return isDone ? digest : nil
    }
}
