import COpenSSL
import Locking

/// The keys that session tickets are encrypted with (RFC 5077 §4, RFC 8446 §4.6.1): generated here,
/// never written anywhere, and shared by all threads, so that each resumes what any of them issued.
///
/// A key encrypts new tickets for one period, for another it only decrypts those that it encrypted,
/// and then it is forgotten.
package final class TLSTicketKeys: Sendable {
    /// Sizes of a key's name, of an encryption key (AES-256), and of an authentication key (HMAC
    /// with SHA-256).
    private static let nameBytes = 16
    private static let keyBytes = 32

    private struct Key {
        var name: [UInt8]
        var encryption: [UInt8]
        var authentication: [UInt8]
        /// When it was generated.
        var since: Int64
    }

    private let periodMilliseconds: Int64
    private let now: @Sendable () -> Int64
    /// The current key and the one before it.
    private let keys = Locked<[Key]>([])

    /// - Parameters:
    ///   - periodMilliseconds: how long a key encrypts new tickets.
    ///   - now: milliseconds of a clock that continues while the machine sleeps.
    package init(
        periodMilliseconds: Int64 = 12 * 3600 * 1000, now: @escaping @Sendable () -> Int64
    ) {
        self.periodMilliseconds = periodMilliseconds
        self.now = now
    }

    /// For how long a session can be resumed, in seconds.
    var lifetimeSeconds: Int { Int(periodMilliseconds / 1000) }

    /// The key that encrypts; `nil` only if there is no randomness.
    private var current: Key? {
        let now = now()
        return keys.withLock { keys in
            Self.forget(&keys, before: now - 2 * periodMilliseconds)
            if let key = keys.first, now - key.since < periodMilliseconds { return key }
            guard let key = Self.make(at: now) else { return nil }
            keys.insert(key, at: 0)
            return key
        }
    }

    /// The key with a name, and whether its tickets are to be replaced; `nil` if the key is unknown
    /// or already forgotten.
    private func known(_ name: UnsafeBufferPointer<UInt8>) -> (key: Key, isOld: Bool)? {
        let (now, wanted) = (now(), Array(name))
        return keys.withLock { keys in
            Self.forget(&keys, before: now - 2 * periodMilliseconds)
            guard let key = keys.first(where: { $0.name == wanted }) else { return nil }
            return (key, now - key.since >= periodMilliseconds)
        }
    }

    private static func forget(_ keys: inout [Key], before time: Int64) {
        keys.removeAll { $0.since <= time }
    }

    private static func make(at time: Int64) -> Key? {
        guard let name = random(nameBytes), let encryption = random(keyBytes),
            let authentication = random(keyBytes)
        else { return nil }
        return Key(
            name: name, encryption: encryption, authentication: authentication, since: time)
    }

    private static func random(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return RAND_priv_bytes(&bytes, Int32(count)) == 1 ? bytes : nil
    }

    // MARK: For the library

    /// The result of the library's ticket callback.
    enum Outcome: Int32 {
        case failed = -1
        /// No ticket, or an unknown one: do a full handshake.
        case none = 0
        case done = 1
        /// Decrypted, and to be replaced by a new one.
        case doneWithRenewal = 2
    }

    /// Sets up the ciphers for one ticket, as SSL_CTX_set_tlsext_ticket_key_evp_cb(3) describes.
    func prepare(
        name: UnsafeMutablePointer<UInt8>, vector: UnsafeMutablePointer<UInt8>,
        cipher: OpaquePointer, mac: OpaquePointer, encrypting: Bool
    ) -> Outcome {
        let named = UnsafeMutableBufferPointer(start: name, count: Self.nameBytes)
        guard encrypting else {
            guard let (key, isOld) = known(UnsafeBufferPointer(named)) else { return .none }
            guard
                EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.encryption, vector) == 1,
                Self.set(key.authentication, in: mac)
            else { return .failed }
            return isOld ? .doneWithRenewal : .done
        }
        guard let key = current,
            RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1,
            EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.encryption, vector) == 1,
            Self.set(key.authentication, in: mac)
        else { return .failed }
        _ = named.update(fromContentsOf: key.name)
        return .done
    }

    /// Static, because a parameter refers to its name without copying it; both end with a NUL.
    private static let keyParameter: StaticString = "key"
    private static let digestParameter: StaticString = "digest"
    private static let digestName: StaticString = "SHA256"

    private static func set(_ key: [UInt8], in mac: OpaquePointer) -> Bool {
        var key = key
        return key.withUnsafeMutableBytes { key in
            let parameters = [
                OSSL_PARAM_construct_octet_string(
                    text(keyParameter), key.baseAddress, key.count),
                // Not written to; the library determines the length.
                OSSL_PARAM_construct_utf8_string(
                    text(digestParameter), UnsafeMutablePointer(mutating: text(digestName)), 0),
                OSSL_PARAM_construct_end(),
            ]
            return EVP_MAC_CTX_set_params(mac, parameters) == 1
        }
    }

    private static func text(_ literal: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
