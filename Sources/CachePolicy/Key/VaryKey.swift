import HTTPCore

/// The secondary cache key (RFC 9111 §4.1): the names that a response's Vary nominates, with the
/// normalised values they had in the request it answered.
///
/// One string of bytes, in memory and in the database: a version byte, then for each name, in
/// alphabetical order and once, its length (1 byte), its bytes in lower case, 1 or 0 for present or
/// absent, and if present the value's length (2 bytes, high first) and bytes. No bytes at all: the
/// response has no Vary and matches every request.
package struct VaryKey: Sendable, Hashable {
    /// The serialised form.
    package let bytes: [UInt8]

    /// The key of a response without Vary.
    package static let none = VaryKey()

    init() { bytes = [] }

    init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    /// The first byte of a serialised form that is not empty.
    static let version: UInt8 = 1

    /// Whether every request matches.
    package var isEmpty: Bool { bytes.isEmpty }
}
