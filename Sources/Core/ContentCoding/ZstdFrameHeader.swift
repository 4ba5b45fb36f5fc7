/// What begins a part of zstd content: the header of a frame (RFC 8878 §3.1.1.1), or of one to be
/// skipped (§3.1.2).
///
/// It is read here, and not left to the library, because the library enforces its limit on the
/// window or not according to how the content arrives.
enum ZstdFrameHeader: Equatable {
    /// A frame.
    /// - Parameters:
    ///   - windowBytes: how far back its decoder may have to look, which is memory.
    ///   - dictionary: the number of the dictionary that it needs; 0 if it needs none.
    ///   - contentBytes: the size of its content; `nil` if it does not say.
    case frame(windowBytes: UInt64, dictionary: UInt64, contentBytes: UInt64?)
    /// A frame that is skipped, with the number of bytes that follow its header.
    case skippable(bytes: Int)

    /// The largest window that a frame may need in bytes (RFC 9659 §3).
    static let maximumWindowBytes: UInt64 = 8 << 20

    /// The result of reading the bytes that have arrived.
    enum Reading: Equatable {
        /// They are the beginning of a header.
        case unfinished
        /// They are a header.
        case whole(ZstdFrameHeader)
        /// They cannot begin a frame.
        case invalid
    }

    private static let magic: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD]
    /// The first of sixteen, which differ in the lower half of the first byte.
    private static let skippableMagic: [UInt8] = [0x50, 0x2A, 0x4D, 0x18]

    /// Reads a header.
    /// - Parameter bytes: the first ones of a frame, and none behind its header.
    static func read(_ bytes: [UInt8]) -> Reading {
        guard let first = bytes.first else { return .unfinished }
        if zip(bytes, magic).allSatisfy(==) { return frame(bytes) }
        guard first & 0xF0 == skippableMagic[0],
            zip(bytes, skippableMagic).dropFirst().allSatisfy(==)
        else { return .invalid }
        guard bytes.count == 8 else { return .unfinished }
        return .whole(.skippable(bytes: Int(number(bytes[4...]))))
    }

    /// The header of a frame: magic number, descriptor, window unless it is the whole content,
    /// dictionary and size of the content.
    private static func frame(_ bytes: [UInt8]) -> Reading {
        guard bytes.count > 4 else { return .unfinished }
        let descriptor = bytes[4]
        let isSingleSegment = descriptor & 0x20 != 0
        let dictionaryCount = [0, 1, 2, 4][Int(descriptor & 3)]
        let sizeCount = [isSingleSegment ? 1 : 0, 2, 4, 8][Int(descriptor >> 6)]
        let dictionaryStart = isSingleSegment ? 5 : 6
        let sizeStart = dictionaryStart + dictionaryCount
        guard bytes.count == sizeStart + sizeCount else { return .unfinished }
        let dictionary = number(bytes[dictionaryStart..<sizeStart])
        // A size of two bytes does not count what one byte can say.
        let size = number(bytes[sizeStart...]) + (sizeCount == 2 ? 256 : 0)
        return .whole(
            .frame(
                windowBytes: isSingleSegment ? size : window(bytes[5]), dictionary: dictionary,
                contentBytes: sizeCount == 0 ? nil : size))
    }

    /// The size in a window descriptor (RFC 8878 §3.1.1.1.2).
    private static func window(_ descriptor: UInt8) -> UInt64 {
        let base = UInt64(1) << (10 + UInt64(descriptor >> 3))
        return base + base / 8 * UInt64(descriptor & 7)
    }

    /// A number with its lowest byte first.
    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
