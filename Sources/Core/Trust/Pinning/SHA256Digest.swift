import HTTPCore

/// A SHA-256 value: of a SubjectPublicKeyInfo (a key pin) or of a whole certificate (a
/// fingerprint).
///
/// This module only holds and compares digests; the TLS adapter computes them.
package struct SHA256Digest: Hashable, Sendable {
    /// The length of a digest in bytes.
    package static let byteCount = 32

    private let word0: UInt64
    private let word1: UInt64
    private let word2: UInt64
    private let word3: UInt64

    /// The digest in `bytes`; `nil` unless there are exactly 32 of them.
    package init?(_ bytes: Span<UInt8>) {
        guard bytes.count == SHA256Digest.byteCount else { return nil }
        func word(_ start: Int) -> UInt64 {
            var value: UInt64 = 0
            for index in start..<(start + 8) {
                value = value << 8 | UInt64(bytes[index])
            }
            return value
        }
        word0 = word(0)
        word1 = word(8)
        word2 = word(16)
        word3 = word(24)
    }

    /// The first eight bytes, as a number.
    package var prefix: UInt64 { word0 }

    /// The 32 bytes, most significant first.
    package var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(SHA256Digest.byteCount)
        for word in [word0, word1, word2, word3] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
            }
        }
        return result
    }

    /// The pin of a key with this digest, ready to paste: `sha256/` and 44 base64 characters.
    package var keyPinText: String {
        "sha256/" + Base64.encode(bytes)
    }

    /// The fingerprint of a certificate with this digest, ready to paste: 32 colon-separated pairs
    /// of upper-case hex digits, as `openssl x509 -fingerprint -sha256` prints them.
    package var fingerprintText: String {
        Hexadecimal.encode(bytes, separator: UInt8(ascii: ":"))
    }
}
