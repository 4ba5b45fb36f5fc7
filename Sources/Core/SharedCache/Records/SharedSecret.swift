import COpenSSL

/// A secret that the gateways of a fleet share: whoever does not have it cannot write what they
/// read (HMAC-SHA256, RFC 2104).
package struct SharedSecret: Sendable {
    /// Distinguishes secrets. It tells nothing about them: it is a part of a digest.
    package let id: UInt32
    /// The key's two blocks, which every code begins with.
    private let inner: DigestBeginning
    private let outer: DigestBeginning

    /// The fewest bytes of a secret, and the most.
    package static let byteCounts = 32...1024
    /// Bytes of a code.
    package static let codeBytes = 32
    /// Bytes of a block of SHA-256.
    private static let blockBytes = 64

    /// `nil` if it is too short or too long, or the library is out of memory.
    package init?(_ bytes: [UInt8]) {
        guard Self.byteCounts.contains(bytes.count) else { return nil }
        self.init(unchecked: bytes)
    }

    private init?(unchecked bytes: [UInt8]) {
        // A key of its own, so that nothing else that is made of the same file helps to forge.
        let purpose = Array("pinfold shared cache: records\0".utf8)
        guard let key = SharedDigest(of: purpose, bytes)?.bytes,
            let id = SharedDigest(of: Array("pinfold shared cache: id\0".utf8), key)
        else { return nil }
        let padded = key + [UInt8](repeating: 0, count: Self.blockBytes - key.count)
        guard let inner = DigestBeginning(padded.map { $0 ^ 0x36 }),
            let outer = DigestBeginning(padded.map { $0 ^ 0x5C })
        else { return nil }
        self.id = id.withBytes { SharedBytes.number($0, at: 0) }
        self.inner = inner
        self.outer = outer
    }

    /// What takes the place of a secret where only the gateways can reach the engine (a Unix
    /// socket): codes then protect from damage, not from forgery.
    package static let none: SharedSecret? = SharedSecret(unchecked: [])

    /// The code of a record.
    /// - Parameters:
    ///   - name: the name under which it is stored: under another one the code is another.
    ///   - bytes: the record.
    /// - Returns: `nil` only if the library is out of memory.
    func code(of bytes: UnsafeRawBufferPointer, under name: [UInt8]) -> SharedDigest? {
        // HMAC of the name's length, the name and the record.
        let digest = name.withUnsafeBytes { inner.digest(UInt32($0.count), $0, bytes) }
        return digest?.withBytes { outer.digest($0) }
    }

    /// Whether a code is that of a record, in a time that does not depend on where it differs.
    func accepts(
        _ code: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer, under name: [UInt8]
    ) -> Bool {
        guard let own = self.code(of: bytes, under: name), code.count == Self.codeBytes,
            let start = code.baseAddress
        else { return false }
        return own.withBytes { CRYPTO_memcmp($0.baseAddress, start, $0.count) == 0 }
    }
}

/// The secrets that a gateway accepts: the first is the one that it writes with. To change it, the
/// new one is first accepted by all, then written with by all, then alone.
package struct SharedKeyring: Sendable {
    private let secrets: [SharedSecret]

    /// How many secrets there may be.
    package static let maximumSecrets = 4

    /// `nil` without any, and with too many.
    package init?(_ secrets: [SharedSecret]) {
        guard (1...Self.maximumSecrets).contains(secrets.count) else { return nil }
        self.secrets = secrets
    }

    /// The one to write with.
    var signing: SharedSecret { secrets[0] }

    /// Whether a code is that of a record, by the secret with this number; `nil` if that is not
    /// accepted.
    func accepts(
        _ code: UnsafeRawBufferPointer, of bytes: UnsafeRawBufferPointer, under name: [UInt8],
        by id: UInt32
    ) -> Bool? {
        for index in secrets.indices where secrets[index].id == id {
            return secrets[index].accepts(code, of: bytes, under: name)
        }
        return nil
    }
}
