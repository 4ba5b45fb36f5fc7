/// FNV-1a, the hash of Fowler, Noll and Vo: the same in every process and version, and continued
/// byte by byte. Anyone can make texts with the same hash, so it is only for texts of our own
/// users, and for tables that are built from them.
public enum FNV1a {
    /// The hash of no bytes.
    @inlinable public static var start: UInt64 { 0xcbf2_9ce4_8422_2325 }

    /// The hash of what `hash` is the hash of, and one byte more.
    @inlinable @inline(__always)
    public static func adding(_ byte: UInt8, to hash: UInt64) -> UInt64 {
        (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    /// The hash of a text in UTF-8.
    public static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(start) { adding($1, to: $0) }
    }

    /// The variant of 32 bits, which is not a part of the other.
    public static func hash32(_ text: String) -> UInt32 {
        text.utf8.reduce(0x811c_9dc5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
    }
}
