/// An object of a binary property list that is being written.
struct BinaryPropertyListObject {
    enum Kind: Int {
        /// Anything but an array or dictionary.
        case single
        case array
        case dictionary

        /// The high half of the first byte.
        var marker: UInt8 { self == .array ? 0xA0 : 0xD0 }
    }

    /// Where its bytes begin; for an array or dictionary, its references.
    let start: Int
    /// Their number, shifted by two bits for the kind: compact, because there are many objects.
    private let packed: Int

    init(start: Int, count: Int, kind: Kind) {
        self.start = start
        packed = count << 2 | kind.rawValue
    }

    /// The number of bytes or references.
    var count: Int { packed >> 2 }
    var kind: Kind { Kind(rawValue: packed & 3) ?? .single }

    /// The number of elements of an array, or members of a dictionary.
    var elements: Int { kind == .dictionary ? count / 2 : count }

    /// The size of the whole object in bytes.
    func size(referenceBytes: Int) -> Int {
        guard kind != .single else { return count }
        return count * referenceBytes + ByteCursor.markerBytes(count: elements)
    }
}

extension ByteCursor {
    /// Writes a nonnegative integer; at most 17 bytes.
    mutating func putInteger(_ value: UInt64) {
        switch value {
        case 0..<1 << 8:
            put(0x10)
            put(UInt8(value))
        case 0..<1 << 16:
            put(0x11)
            put(value, bytes: 2)
        case 0..<1 << 32:
            put(0x12)
            put(value, bytes: 4)
        case 0..<1 << 63:
            put(0x13)
            put(value, bytes: 8)
        default:
            // With 8 bytes it would be signed.
            put(0x14)
            put(0, bytes: 8)
            put(value, bytes: 8)
        }
    }

    /// Writes an object's first byte and its size; at most 10 bytes.
    mutating func putMarker(_ kind: UInt8, count: Int) {
        if count < 15 {
            put(kind | UInt8(count))
        } else {
            put(kind | 0x0F)
            putInteger(UInt64(count))
        }
    }

    static func markerBytes(count: Int) -> Int {
        switch count {
        case 0..<15: 1
        case 15..<1 << 8: 3
        case 1 << 8..<1 << 16: 4
        case 1 << 16..<1 << 32: 6
        default: 10
        }
    }
}
