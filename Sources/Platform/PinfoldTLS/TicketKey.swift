import CLinux
import COpenSSL

/// A key that session tickets are encrypted with: in memory of its own, which is neither swapped
/// out, where the process may prevent that, nor part of a core dump, and is wiped at the end.
///
/// Never changed after it was made, so any thread may use it.
final class TicketKey: @unchecked Sendable {
    /// Sizes of its name, of the encryption key (AES-256), and of the authentication key (HMAC with
    /// SHA-256), in this order in the memory.
    private static let nameBytes = 16
    private static let keyBytes = 32
    private static let totalBytes = nameBytes + 2 * keyBytes

    /// When it was generated.
    let since: Int64
    private let memory: UnsafeMutableRawPointer

    private init?(since: Int64, filling fill: (UnsafeMutableRawPointer) -> Bool) {
        let mapped = mmap(
            nil, Self.totalBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let mapped, mapped != UnsafeMutableRawPointer(bitPattern: -1) else { return nil }
        memory = mapped
        self.since = since
        // Both are only more than what is usual for keys.
        _ = mlock(memory, Self.totalBytes)
        _ = madvise(memory, Self.totalBytes, Int32(MADV_DONTDUMP))
        // What follows is undone by deinit.
        guard fill(memory) else { return nil }
    }

    deinit {
        OPENSSL_cleanse(memory, Self.totalBytes)
        munmap(memory, Self.totalBytes)
    }

    /// Generates a key; `nil` only if there is no randomness, or no memory.
    convenience init?(since: Int64) {
        self.init(since: since) {
            RAND_priv_bytes($0.assumingMemoryBound(to: UInt8.self), Int32(Self.totalBytes)) == 1
        }
    }

    /// The encryption key.
    var encryption: UnsafePointer<UInt8> {
        UnsafePointer((memory + Self.nameBytes).assumingMemoryBound(to: UInt8.self))
    }

    private var authentication: UnsafeMutableRawPointer {
        memory + Self.nameBytes + Self.keyBytes
    }

    /// Whether it has a name.
    func isNamed(_ name: UnsafeRawPointer) -> Bool { memcmp(memory, name, Self.nameBytes) == 0 }

    /// Whether it has the name of another one.
    func isNamed(like other: TicketKey) -> Bool { isNamed(other.memory) }

    func copyName(to name: UnsafeMutableRawPointer) {
        name.copyMemory(from: memory, byteCount: Self.nameBytes)
    }

    // MARK: Passed on

    /// The length of a key as bytes: what is in its memory, and when it was generated.
    static let passedOnBytes = totalBytes + MemoryLayout<Int64>.size

    /// A key as bytes.
    convenience init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.passedOnBytes, let start = bytes.baseAddress else { return nil }
        let since = bytes.loadUnaligned(fromByteOffset: Self.totalBytes, as: Int64.self)
        self.init(since: since) {
            $0.copyMemory(from: start, byteCount: Self.totalBytes)
            return true
        }
    }

    /// Writes it as bytes.
    func write(to room: UnsafeMutableRawBufferPointer) {
        precondition(room.count == Self.passedOnBytes)
        room.copyMemory(from: UnsafeRawBufferPointer(start: memory, count: Self.totalBytes))
        room.storeBytes(of: since, toByteOffset: Self.totalBytes, as: Int64.self)
    }

    // MARK: For the library

    /// Static, because a parameter refers to its name without copying it; both end with a NUL.
    private static let keyParameter: StaticString = "key"
    private static let digestParameter: StaticString = "digest"
    private static let digestName: StaticString = "SHA256"

    /// Makes it the key of a message authentication code; returns whether that worked.
    func authenticates(_ mac: OpaquePointer) -> Bool {
        let parameters = [
            OSSL_PARAM_construct_octet_string(
                Self.text(Self.keyParameter), authentication, Self.keyBytes),
            // Not written to; the library determines the length.
            OSSL_PARAM_construct_utf8_string(
                Self.text(Self.digestParameter),
                UnsafeMutablePointer(mutating: Self.text(Self.digestName)), 0),
            OSSL_PARAM_construct_end(),
        ]
        return EVP_MAC_CTX_set_params(mac, parameters) == 1
    }

    private static func text(_ literal: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
