/// Eight bytes that are examined together. Each test sets the high bit of the bytes that match;
/// bytes after the first match may be marked wrongly, so that only the existence and the position
/// of the first mark count.
struct EightBytes {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highs: UInt64 = 0x8080_8080_8080_8080

    private let word: UInt64

    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    var areASCII: Bool { word & Self.highs == 0 }

    /// Marks the bytes that are not ASCII.
    @inline(__always)
    var marksOfOthers: UInt64 { word & Self.highs }

    /// The index of the first marked byte, if there is one.
    @inline(__always)
    static func first(of marks: UInt64) -> Int { marks.trailingZeroBitCount / 8 }

    @inline(__always)
    func marks(of byte: UInt8) -> UInt64 { Self.zeros(word ^ (Self.ones &* UInt64(byte))) }

    /// Marks both bytes that equal `byte` or differ from it only in the bits of `mask`.
    @inline(__always)
    func marks(of byte: UInt8, ignoring mask: UInt8) -> UInt64 {
        Self.zeros((word | (Self.ones &* UInt64(mask))) ^ (Self.ones &* UInt64(byte | mask)))
    }

    /// Marks the bytes below `byte`, which is at most 0x80.
    @inline(__always)
    func marks(below byte: UInt8) -> UInt64 {
        (word &- Self.ones &* UInt64(byte)) & ~word & Self.highs
    }

    @inline(__always)
    private static func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & highs }
}

extension UnsafeRawBufferPointer {
    var isASCII: Bool {
        var index = 0
        while index &+ 8 <= count {
            guard EightBytes(self, at: index).areASCII else { return false }
            index &+= 8
        }
        while index < count {
            guard self[index] < 0x80 else { return false }
            index &+= 1
        }
        return true
    }
}
