/// Names of fields that were received as literals that are never indexed, as a sketch of 64 bits:
/// whoever forwards such a field must do the same (RFC 7541 §6.2.3). The names that an encoder
/// never indexes are not among them. A name may be taken for one of
/// them by mistake, which costs some bytes on the wire, never the other way round.
public struct SensitiveNames: Sendable, Equatable {
    private var bits: UInt64 = 0

    /// No names.
    public init() {}

    /// Whether there are none.
    @inline(__always)
    public var isEmpty: Bool { bits == 0 }

    /// The bit of a name of any letter case.
    private static func bit(_ name: UnsafeRawBufferPointer) -> UInt64 {
        var sum = UInt64(truncatingIfNeeded: name.count)
        for byte in name { sum = sum &* 31 &+ UInt64(byte | 0x20) }
        return 1 &<< (sum & 63)
    }

    /// Adds a name, which has at least one byte.
    mutating func insert(_ name: UnsafeRawBufferPointer) { bits |= Self.bit(name) }

    /// Whether a name may be one of them; false if it is not.
    func mayContain(_ name: UnsafeRawBufferPointer) -> Bool { bits & Self.bit(name) != 0 }
}
