import COpenSSL

/// SHA-256 (FIPS 180-4).
enum SharedDigest {
    /// Bytes of a digest.
    static let byteCount = 32

    /// The digest of two pieces, one after the other; `nil` only if the library is out of memory.
    static func sha256(_ first: [UInt8], _ second: UnsafeRawBufferPointer) -> [UInt8]? {
        var isDone = false
        let digest = [UInt8](unsafeUninitializedCapacity: byteCount) { memory, count in
            isDone = first.withUnsafeBytes {
                pinfold_SHA256(
                    $0.baseAddress, $0.count, second.baseAddress, second.count,
                    memory.baseAddress) == 1
            }
            count = isDone ? byteCount : 0
        }
        return isDone ? digest : nil
    }

    static func sha256(_ first: [UInt8], _ second: [UInt8]) -> [UInt8]? {
        second.withUnsafeBytes { sha256(first, $0) }
    }

    static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? { sha256([], bytes) }
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
