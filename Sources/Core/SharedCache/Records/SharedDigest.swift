import COpenSSL

/// A SHA-256 (FIPS 180-4).
package struct SharedDigest: Sendable, Hashable {
    // The 32 bytes, as they are in memory. An array would be memory of its own for every digest.
    private let word0: UInt64
    private let word1: UInt64
    private let word2: UInt64
    private let word3: UInt64

    /// Bytes of a digest.
    static let byteCount = 32

    /// - Parameter bytes: a digest that was stored: at least 32.
    init(_ bytes: UnsafeRawBufferPointer) {
        word0 = bytes.loadUnaligned(as: UInt64.self)
        word1 = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        word2 = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
        word3 = bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
    }

    /// The digest of some bytes; `nil` only if the library is out of memory.
    init?(of bytes: UnsafeRawBufferPointer) { self.init(of: [], bytes) }

    /// That of two pieces, one after the other.
    init?(of first: [UInt8], _ second: UnsafeRawBufferPointer) {
        self.init { digest in
            first.withUnsafeBytes {
                pinfold_SHA256(
                    $0.baseAddress, $0.count, second.baseAddress, second.count, digest) == 1
            }
        }
    }

    init?(of first: [UInt8], _ second: [UInt8]) {
        guard let digest = second.withUnsafeBytes({ Self(of: first, $0) }) else { return nil }
        self = digest
    }

    /// - Parameter write: writes 32 bytes, and returns whether it could.
    fileprivate init?(_ write: (UnsafeMutablePointer<UInt8>?) -> Bool) {
        let digest = withUnsafeTemporaryAllocation(
            byteCount: Self.byteCount, alignment: 8
        ) { memory in
            write(memory.baseAddress?.assumingMemoryBound(to: UInt8.self))
                ? SharedDigest(UnsafeRawBufferPointer(memory)) : nil
        }
        guard let digest else { return nil }
        self = digest
    }

    /// Runs `body` with the 32 bytes.
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        withUnsafeBytes(of: (word0, word1, word2, word3), body)
    }

    /// The 32 bytes.
    var bytes: [UInt8] { withBytes { [UInt8]($0) } }
}

/// What many digests begin with: it is digested once.
struct DigestBeginning: Sendable {
    private let state: SHA256_CTX

    /// `nil` only if the library is out of memory.
    init?(_ bytes: [UInt8]) {
        var state = SHA256_CTX()
        guard pinfold_SHA256_begin(&state, bytes, bytes.count) == 1 else { return nil }
        self.state = state
    }

    /// The digest of this and of what follows: a number, the lowest byte first, and two pieces.
    /// `nil` only if the library is out of memory.
    func digest<Number: FixedWidthInteger>(
        _ number: Number, _ first: UnsafeRawBufferPointer,
        _ second: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) -> SharedDigest? {
        withUnsafeBytes(of: number.littleEndian) { digest($0, first, second) }
    }

    /// The same without a number.
    func digest(_ bytes: UnsafeRawBufferPointer) -> SharedDigest? {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        return digest(bytes, nothing, nothing)
    }

    private func digest(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer,
        _ third: UnsafeRawBufferPointer
    ) -> SharedDigest? {
        SharedDigest { digest in
            withUnsafePointer(to: state) {
                pinfold_SHA256_end(
                    $0, first.baseAddress, first.count, second.baseAddress, second.count,
                    third.baseAddress, third.count, digest) == 1
            }
        }
    }
}

/// Numbers as bytes, the lowest first.
enum SharedBytes {
    static func number<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { [UInt8]($0) }
    }

    /// The number at an offset, where there are enough bytes.
    static func number<Number: FixedWidthInteger>(
        _ bytes: UnsafeRawBufferPointer, at offset: Int, as type: Number.Type = Number.self
    ) -> Number {
        Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
