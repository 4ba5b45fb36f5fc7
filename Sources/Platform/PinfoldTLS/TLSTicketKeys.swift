import COpenSSL
import Locking

/// The keys that session tickets are encrypted with (RFC 5077 §4, RFC 8446 §4.6.1): generated here
/// or passed on by a predecessor, never written to a file, and shared by all threads, so that each
/// resumes what any of them issued.
///
/// A key encrypts new tickets for one period, for another it only decrypts those that it encrypted,
/// and then it is forgotten.
package final class TLSTicketKeys: Sendable {
    private let periodMilliseconds: Int64
    private let now: @Sendable () -> Int64
    /// The current key and the one before it.
    private let keys = Locked<[TicketKey]>([])

    /// Different in every process, for sessions that are not to be resumed in another one.
    package let origin: String

    /// - Parameters:
    ///   - periodMilliseconds: how long a key encrypts new tickets.
    ///   - now: milliseconds of a clock that continues while the machine sleeps, and is the same in
    ///     every process.
    package init(
        periodMilliseconds: Int64 = 12 * 3600 * 1000, now: @escaping @Sendable () -> Int64
    ) {
        self.periodMilliseconds = periodMilliseconds
        self.now = now
        var random = SystemRandomNumberGenerator()
        origin = "\(random.next())-\(random.next())"
    }

    /// For how long a session can be resumed, in seconds.
    var lifetimeSeconds: Int { Int(periodMilliseconds / 1000) }

    /// The key that encrypts; `nil` only if there is no randomness.
    private var current: TicketKey? {
        let now = now()
        return keys.withLock { keys in
            Self.forget(&keys, before: now - 2 * periodMilliseconds)
            if let key = keys.first, now - key.since < periodMilliseconds { return key }
            guard let key = TicketKey(since: now) else { return nil }
            keys.insert(key, at: 0)
            return key
        }
    }

    /// The key with a name, and whether its tickets are to be replaced; `nil` if the key is unknown
    /// or already forgotten.
    private func known(_ name: UnsafePointer<UInt8>) -> (key: TicketKey, isOld: Bool)? {
        let now = now()
        return keys.withLock { keys in
            Self.forget(&keys, before: now - 2 * periodMilliseconds)
            guard let key = keys.first(where: { $0.isNamed(name) }) else { return nil }
            return (key, now - key.since >= periodMilliseconds)
        }
    }

    private static func forget(_ keys: inout [TicketKey], before time: Int64) {
        keys.removeAll { $0.since <= time }
    }

    /// Forgets all keys: no session that was issued until now is resumed.
    package func forget() {
        keys.withLock { $0 = [] }
    }

    // MARK: For a successor

    /// The most keys that are passed on.
    private static let maximumPassedOn = 4
    /// The most bytes that ``withPassedOn(_:)`` passes on.
    package static let maximumBytes = maximumPassedOn * TicketKey.passedOnBytes

    /// Calls `body` with the keys as bytes, which are wiped afterwards; with none if there is no
    /// key yet.
    package func withPassedOn<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        let keys = keys.withLock { Array($0.prefix(Self.maximumPassedOn)) }
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(1, keys.count * TicketKey.passedOnBytes), alignment: 1)
        defer {
            OPENSSL_cleanse(room.baseAddress, room.count)
            room.deallocate()
        }
        var end = 0
        for key in keys {
            let next = end + TicketKey.passedOnBytes
            key.write(to: UnsafeMutableRawBufferPointer(rebasing: room[end..<next]))
            end = next
        }
        try body(UnsafeRawBufferPointer(rebasing: room[..<end]))
    }

    /// Takes over the keys that a predecessor has passed on, apart from those that it would have
    /// forgotten by now. What is none of its messages has no effect.
    package func takeOver(_ passedOn: UnsafeRawBufferPointer) {
        let size = TicketKey.passedOnBytes
        guard passedOn.count % size == 0, passedOn.count <= Self.maximumBytes else { return }
        let now = now()
        let taken = stride(from: 0, to: passedOn.count, by: size).compactMap { start in
            TicketKey(UnsafeRawBufferPointer(rebasing: passedOn[start..<start + size]))
        }
        keys.withLock { keys in
            for key in taken where key.since <= now && !keys.contains(where: key.isNamed(like:)) {
                keys.append(key)
            }
            keys.sort { $0.since > $1.since }
            Self.forget(&keys, before: now - 2 * periodMilliseconds)
        }
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
        guard encrypting else {
            guard let (key, isOld) = known(name) else { return .none }
            guard
                EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.encryption, vector) == 1,
                key.authenticates(mac)
            else { return .failed }
            return isOld ? .doneWithRenewal : .done
        }
        guard let key = current,
            RAND_bytes(vector, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1,
            EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nil, key.encryption, vector) == 1,
            key.authenticates(mac)
        else { return .failed }
        key.copyName(to: name)
        return .done
    }
}
