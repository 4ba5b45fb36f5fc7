import PinfoldConfiguration
import PinfoldTLS
import Trust

extension PolicyEnvelope {
    /// The SHA-256 of what is signed, in hex: the same for everybody who has this policy, whoever
    /// else has signed it. Empty if it cannot be computed.
    package var hash: String {
        guard let digest = SHA256Digest(hashing: Array(signed).span) else { return "" }
        let digits = Array("0123456789abcdef".utf8)
        return String(
            decoding: digest.bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
            as: UTF8.self)
    }

    /// Whether a text can be such a hash.
    package static func isHash(_ text: String) -> Bool {
        text.utf8.count == 2 * SHA256Digest.byteCount
            && text.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
    }
}
