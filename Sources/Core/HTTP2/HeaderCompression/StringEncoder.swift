import HTTPCore

/// Writes strings (RFC 7541 §5.2), in the Huffman code where that is shorter.
enum StringEncoder {
    /// Writes a string; returns its end.
    ///
    /// Bytes after the end may be touched, as far as 8 bytes beyond what the string takes without
    /// the code.
    /// - Parameter lowercases: whether capital letters become small ones.
    @inline(__always)
    static func write(
        _ source: UnsafeRawPointer, count: Int, lowercases: Bool,
        to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        // Nearly every coded string is short enough for one byte of length.
        let start = place + 1
        if let end = writeCoded(source, count: count, lowercases: lowercases, to: start) {
            let length = end - start
            guard length >= 0x7F else {
                place.storeBytes(of: 0x80 | UInt8(truncatingIfNeeded: length), as: UInt8.self)
                return end
            }
            return moveCoded(start, length, to: place)
        }
        return writePlain(source, count: count, lowercases: lowercases, to: place)
    }

    @inline(never)
    private static func moveCoded(
        _ start: UnsafeMutableRawPointer, _ length: Int, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let moved = place + (length &- 0x7F < 0x80 ? 2 : length &- 0x7F < 0x4000 ? 3 : 4)
        moved.copyMemory(from: start, byteCount: length)
        _ = PrefixInteger.write(length, mask: 0x7F, pattern: 0x80, to: place)
        return moved + length
    }

    @inline(never)
    private static func writePlain(
        _ source: UnsafeRawPointer, count: Int, lowercases: Bool,
        to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let start = PrefixInteger.write(count, mask: 0x7F, pattern: 0, to: place)
        start.copyMemory(from: source, byteCount: count)
        if lowercases {
            for offset in 0..<count {
                let byte = (start + offset).load(as: UInt8.self)
                (start + offset).storeBytes(of: ASCII.lowercased(byte), as: UInt8.self)
            }
        }
        return start + count
    }

    /// Writes a string in the code; `nil` if it is not shorter so.
    @inline(__always)
    private static func writeCoded(
        _ source: UnsafeRawPointer, count: Int, lowercases: Bool,
        to start: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer? {
        var place = start
        // What is pending are the lowest `bits` bits, fewer than 32 before each symbol.
        var pending: UInt64 = 0
        var bits: UInt64 = 0
        for offset in 0..<count {
            var byte = (source + offset).load(as: UInt8.self)
            if lowercases { byte = ASCII.lowercased(byte) }
            let entry = HuffmanCode.codes[unchecked: Int(byte)]
            let length = entry & 0xFF
            pending = pending &<< length | entry &>> 32
            bits &+= length
            if bits >= 32 {
                guard place - start < count else { return nil }
                bits &-= 32
                place.storeBytes(
                    of: UInt32(truncatingIfNeeded: pending &>> bits).bigEndian, as: UInt32.self)
                place += 4
            }
        }
        // The end is padded with the highest bits of the end-of-string symbol, all ones.
        let rest = Int((bits &+ 7) &>> 3)
        guard place - start &+ rest < count else { return nil }
        let padded = (pending &<< (32 &- bits)) | (UInt64(UInt32.max) &>> bits)
        place.storeBytes(of: UInt32(truncatingIfNeeded: padded).bigEndian, as: UInt32.self)
        return place + rest
    }
}
