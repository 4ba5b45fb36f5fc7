import COpenSSL
import HTTPCore

/// A SHA-256 (FIPS 180-4) of a token, or one with a key of credentials that were verified.
package struct ProofDigest: Sendable, Hashable {
    private let word0: UInt64
    private let word1: UInt64
    private let word2: UInt64
    private let word3: UInt64

    private init(_ word0: UInt64, _ word1: UInt64, _ word2: UInt64, _ word3: UInt64) {
        self.word0 = word0
        self.word1 = word1
        self.word2 = word2
        self.word3 = word3
    }

    /// The digest in 64 hexadecimal digits of either case; `nil` for anything else.
    init?(hexadecimal digits: ArraySlice<UInt8>) {
        guard digits.count == 64 else { return nil }
        var words: [UInt64] = [0, 0, 0, 0]
        for (index, digit) in digits.enumerated() {
            guard let value = ASCII.hexValue(digit) else { return nil }
            words[index / 16] = words[index / 16] << 4 | UInt64(value)
        }
        self.init(words[0], words[1], words[2], words[3])
    }

    /// The SHA-256 of some bytes.
    package init(of bytes: Span<UInt8>) { self.init(of: [], then: bytes) }

    /// The SHA-256 of some bytes and others after them.
    fileprivate init(of first: [UInt8], then second: Span<UInt8>) {
        self = withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { output in
            let succeeds = second.withUnsafeBytes { second in
                pinfold_SHA256(
                    first, first.count, second.baseAddress, second.count,
                    output.baseAddress?.assumingMemoryBound(to: UInt8.self))
            }
            // Never without: then no credentials must count as known.
            precondition(succeeds != 0, "SHA-256 is not available")
            func word(_ index: Int) -> UInt64 {
                UInt64(bigEndian: output.load(fromByteOffset: 8 * index, as: UInt64.self))
            }
            return ProofDigest(word(0), word(1), word(2), word(3))
        }
    }

    /// Feeds one word to the hasher: all are equally unpredictable to whoever chooses the content,
    /// for he does not know the key, or would have to find prefixes of SHA-256.
    package func hash(into hasher: inout Hasher) { hasher.combine(word0) }

    package static func == (one: ProofDigest, other: ProofDigest) -> Bool {
        (one.word0 ^ other.word0) | (one.word1 ^ other.word1) | (one.word2 ^ other.word2)
            | (one.word3 ^ other.word3) == 0
    }
}

/// The key of the process under which verified credentials are remembered. Whoever reads the
/// remembered digests in its memory, but not the key, cannot guess passwords with them.
package struct ProofKey: Sendable {
    /// 32 bytes.
    private let bytes: [UInt8]

    /// - Parameter random: four random words, of a generator for secrets.
    package init(random: (UInt64, UInt64, UInt64, UInt64)) {
        bytes = [random.0, random.1, random.2, random.3].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * UInt64($0))) }
        }
    }

    /// SHA-256(key ‖ value). The digests never leave the process, so nobody can extend one.
    package func digest(of value: Span<UInt8>) -> ProofDigest {
        ProofDigest(of: bytes, then: value)
    }
}
