/// Integers with a prefix of fewer than eight bits (RFC 7541 §5.1).
enum PrefixInteger {
    /// The rest of an integer whose prefix has all bits set, which are `prefix`.
    ///
    /// At most four bytes follow a prefix, leading zeros included: more than any string or index
    /// within the limits needs.
    @inline(never)
    static func readRest(
        _ prefix: Int, _ next: inout UnsafeRawPointer, end: UnsafeRawPointer
    ) throws(HeaderCompressionError) -> Int {
        var value = prefix
        var shift = 0
        while true {
            guard next < end else { throw .truncatedBlock }
            let byte = next.load(as: UInt8.self)
            next += 1
            guard shift < 28 else { throw .integerTooLarge }
            value &+= Int(byte & 0x7F) &<< shift
            if byte & 0x80 == 0 { return value }
            shift &+= 7
        }
    }

    /// Writes an integer after the bits `pattern` of its first byte; `mask` is the largest prefix.
    ///
    /// - Returns: where the next byte goes.
    @inline(__always)
    static func write(
        _ value: Int, mask: Int, pattern: UInt8, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard value >= mask else {
            place.storeBytes(of: pattern | UInt8(truncatingIfNeeded: value), as: UInt8.self)
            return place + 1
        }
        place.storeBytes(of: pattern | UInt8(truncatingIfNeeded: mask), as: UInt8.self)
        return writeRest(value &- mask, to: place + 1)
    }

    @inline(never)
    private static func writeRest(
        _ rest: Int, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        var (rest, place) = (rest, place)
        while rest >= 0x80 {
            place.storeBytes(of: 0x80 | UInt8(truncatingIfNeeded: rest & 0x7F), as: UInt8.self)
            place += 1
            rest >>= 7
        }
        place.storeBytes(of: UInt8(truncatingIfNeeded: rest), as: UInt8.self)
        return place + 1
    }
}
