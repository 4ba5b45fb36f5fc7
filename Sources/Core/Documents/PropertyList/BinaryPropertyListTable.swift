/// Where the objects of a binary property list are: its trailer, and the table of offsets.
struct BinaryPropertyListTable {
    /// 2001-01-01T00:00:00Z in seconds since 1970: the epoch of its dates.
    static let epoch: Double = 978_307_200
    static let trailerBytes = 32
    static let headerBytes = 8

    /// Where the table begins: all objects precede it.
    let start: Int
    /// The number of the root object.
    let top: Int
    let referenceBytes: Int
    private let offsetBytes: Int
    private let count: Int

    init(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        let trailer = bytes.count - Self.trailerBytes
        guard trailer >= Self.headerBytes else {
            throw DocumentError(
                .plist, .malformed("the binary property list is truncated"),
                at: DocumentLocation(offset: bytes.count))
        }
        offsetBytes = Int(bytes[trailer + 6])
        referenceBytes = Int(bytes[trailer + 7])
        guard let count = bytes.number(at: trailer + 8, bytes: 8),
            let top = bytes.number(at: trailer + 16, bytes: 8),
            let start = bytes.number(at: trailer + 24, bytes: 8), (1...8).contains(offsetBytes),
            (1...8).contains(referenceBytes), count > 0, count <= trailer / offsetBytes,
            start > Self.headerBytes, start <= trailer - count * offsetBytes, top < count
        else {
            throw DocumentError(
                .plist, .malformed("the trailer is damaged"), at: DocumentLocation(offset: trailer))
        }
        (self.count, self.top, self.start) = (count, top, start)
    }

    /// The offset of an object, which is before the table and has at least a first byte.
    func offset(
        of object: Int, _ bytes: UnsafeRawBufferPointer
    ) throws(DocumentError) -> Int {
        guard object < count else {
            throw DocumentError(
                .plist, .malformed("object \(object) does not exist"),
                at: DocumentLocation(offset: start))
        }
        let place = start + object * offsetBytes
        guard let offset = bytes.number(at: place, bytes: offsetBytes),
            offset >= Self.headerBytes, offset < start
        else {
            throw DocumentError(
                .plist, .malformed("the table of offsets is damaged"),
                at: DocumentLocation(offset: place))
        }
        return offset
    }
}

extension UnsafeRawBufferPointer {
    /// A number of 1 to 8 existing bytes, most significant first.
    func word(at offset: Int, bytes width: Int) -> UInt64 {
        precondition(offset >= 0 && width > 0 && width <= 8 && offset <= count - width)
        if offset <= count - 8 {
            let word = loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            return UInt64(bigEndian: word) >> UInt64(64 - 8 * width)
        }
        var value: UInt64 = 0
        for index in offset..<offset + width { value = value << 8 | UInt64(self[index]) }
        return value
    }

    /// The same; `nil` if it is too large for an offset.
    func number(at offset: Int, bytes count: Int) -> Int? {
        Int(exactly: word(at: offset, bytes: count))
    }
}
