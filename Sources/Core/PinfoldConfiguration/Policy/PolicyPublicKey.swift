import Authentication
import HTTPCore

/// A public key on Ed25519 that policies are verified with, as it is written: `ed25519:` and the 32
/// bytes of the point in base64.
package struct PolicyPublicKey: Sendable, Hashable, CustomStringConvertible {
    package static let prefix = "ed25519:"
    /// The 44 characters of 32 bytes in base64.
    static let characters = Base64.count(32)

    /// The 32 bytes of the point (RFC 8032 §5.1.2).
    package let bytes: [UInt8]
    private let key: VerificationKey

    /// - Parameter bytes: the point; not one of low order, for which no private key is needed.
    package init(bytes: [UInt8]) throws(VerificationKeyError) {
        key = try VerificationKey(ed25519: bytes)
        self.bytes = bytes
    }

    /// - Parameter text: as ``description``; `nil` for anything else.
    package init?(_ text: some StringProtocol) {
        guard text.hasPrefix(Self.prefix) else { return nil }
        let encoded = text.utf8.dropFirst(Self.prefix.utf8.count)
        guard encoded.count == Self.characters, let bytes = Base64.decode(encoded),
            let key = try? PolicyPublicKey(bytes: bytes)
        else { return nil }
        self = key
    }

    /// Whether a signature is this key's.
    package func verifies(_ signature: [UInt8], of content: [UInt8]) -> Bool {
        key.verifies(signature, of: content[...])
    }

    package var description: String { Self.prefix + Base64.encode(bytes) }

    package static func == (one: Self, other: Self) -> Bool { one.bytes == other.bytes }

    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}
