import HTTPCore

/// Finds names of the static table by a perfect hash over a name's length, and its first, middle
/// and last byte.
enum StaticNames {
    private static let factor: UInt32 = 0xFE44_63A7

    /// For each hash the first index with the name; 0 if there is none. A test recomputes it.
    private static let indices: InlineArray<128, UInt8> = [
        0, 0, 0, 15, 49, 0, 0, 0, 0, 0, 56, 51, 0, 0, 0, 41, 50, 29, 0, 0, 0, 48, 0, 0, 38, 0, 44,
        0, 0, 0, 0, 0, 0, 53, 27, 0, 0, 0, 0, 0, 16, 0, 0, 0, 24, 0, 18, 0, 0, 0, 0, 30, 31, 0, 0,
        47, 45, 0, 23, 0, 0, 0, 0, 0, 0, 43, 0, 20, 37, 0, 22, 0, 0, 0, 57, 0, 39, 0, 0, 58, 52, 0,
        42, 60, 0, 0, 0, 0, 40, 0, 46, 28, 0, 33, 17, 55, 0, 0, 0, 0, 0, 0, 0, 59, 0, 36, 0, 0, 26,
        0, 19, 21, 0, 61, 0, 34, 0, 0, 35, 0, 32, 25, 0, 0, 0, 54, 0, 0,
    ]

    static let host = 38
    static let transferEncoding = 57

    /// Whether the name at an index is Authorization, Cookie, Proxy-Authorization or Set-Cookie,
    /// whose values are secrets.
    @inline(__always)
    static func isSecret(_ index: Int) -> Bool {
        switch index {
        case 23, 32, 49, 55: true
        default: false
        }
    }

    /// The index of a name in any letter case, which has at least one byte; 0 if it is not in the
    /// table.
    static func index(_ name: UnsafeRawPointer, _ count: Int) -> Int {
        let first = name.load(as: UInt8.self)
        let middle = (name + count / 2).load(as: UInt8.self)
        let last = (name + (count &- 1)).load(as: UInt8.self)
        let key =
            UInt32(truncatingIfNeeded: count) & 0xFF | UInt32(first | 0x20) &<< 8
            | UInt32(middle | 0x20) &<< 16 | UInt32(last | 0x20) &<< 24
        let index = Int(indices[unchecked: Int((key &* factor) &>> 25)])
        guard index > 0 else { return 0 }
        let line = StaticTable.line(index)
        guard line.nameCount == count, isEqual(name, line.start, count) else { return 0 }
        return index
    }

    /// Whether a name is `lowercase`, which has small letters, digits and hyphens only.
    static func isEqual(_ name: UnsafeRawPointer, _ lowercase: UnsafeRawPointer, _ count: Int)
        -> Bool
    {
        for offset in 0..<count {
            let byte = (name + offset).load(as: UInt8.self)
            guard ASCII.lowercased(byte) == (lowercase + offset).load(as: UInt8.self) else {
                return false
            }
        }
        return true
    }
}
