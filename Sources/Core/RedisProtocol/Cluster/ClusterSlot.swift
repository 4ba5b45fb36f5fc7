import HTTPCore

/// The slots over which a cluster distributes keys.
package enum ClusterSlot {
    /// How many there are.
    package static let count = 16_384

    /// The slot of a key: CRC16 of its hash tag, which is what is between its first `{` and the
    /// next `}` unless that is nothing, or of all of it.
    package static func of(_ key: Span<UInt8>) -> UInt16 {
        crc16(key.extracting(tag(of: key))) & UInt16(count - 1)
    }

    /// The bytes of a key that its slot depends on.
    package static func tag(of key: Span<UInt8>) -> Range<Int> {
        let open = key.firstIndex(of: UInt8(ascii: "{"), from: 0)
        guard open < key.count else { return 0..<key.count }
        let close = key.firstIndex(of: UInt8(ascii: "}"), from: open + 1)
        guard close < key.count, close > open + 1 else { return 0..<key.count }
        return open + 1..<close
    }

    /// CRC-16/XMODEM: polynomial 0x1021, nothing reflected, from 0.
    package static func crc16(_ bytes: Span<UInt8>) -> UInt16 {
        var crc: UInt16 = 0
        for index in bytes.indices {
            crc = crc &<< 8 ^ table[Int(UInt8(truncatingIfNeeded: crc &>> 8) ^ bytes[index])]
        }
        return crc
    }

    private static let table: [UInt16] = (0..<256).map { byte in
        (0..<8).reduce(UInt16(byte) &<< 8) { crc, _ in
            crc & 0x8000 == 0 ? crc &<< 1 : crc &<< 1 ^ 0x1021
        }
    }
}
