import HTTPCore

/// A line `name: value CRLF` that is to be encoded.
struct FieldLine {
    let start: UnsafeRawPointer
    /// The bytes of the line.
    let count: Int
    let nameCount: Int
    /// Without surrounding whitespace.
    let value: UnsafeRawPointer
    let valueCount: Int

    /// The line that begins at `start`, where `available` bytes are; `nil` if there is none.
    init?(_ start: UnsafeRawPointer, _ available: Int) {
        let colon = Self.first(Byte.colon, in: start, from: 0, to: available)
        guard colon > 0, colon < available else { return nil }
        var end = Self.first(Byte.carriageReturn, in: start, from: colon &+ 1, to: available)
        guard end &+ 1 < available, (start + (end &+ 1)).load(as: UInt8.self) == Byte.lineFeed
        else { return nil }
        self.start = start
        count = end &+ 2
        nameCount = colon
        var first = colon &+ 1
        while first < end, ASCII.isWhitespace((start + first).load(as: UInt8.self)) { first &+= 1 }
        while first < end, ASCII.isWhitespace((start + (end &- 1)).load(as: UInt8.self)) {
            end &-= 1
        }
        value = start + first
        valueCount = end &- first
    }

    /// The offset of the first `byte` in `from..<to`, or `to`; eight bytes at a time.
    @inline(__always)
    private static func first(
        _ byte: UInt8, in start: UnsafeRawPointer, from: Int, to end: Int
    ) -> Int {
        var offset = from
        while offset &+ 8 <= end {
            let found = WordSearch.equal(byte, in: WordCopy.word(start + offset))
            if found != 0 { return offset &+ found.trailingZeroBitCount &>> 3 }
            offset &+= 8
        }
        while offset < end, (start + offset).load(as: UInt8.self) != byte { offset &+= 1 }
        return offset
    }

    var name: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: nameCount) }

    /// A hash of the whole line.
    var hash: UInt32 { Self.hash(start, count) }

    /// A hash of the name in its letter case.
    var nameHash: UInt32 { Self.hash(start, nameCount) }

    @inline(__always)
    private static func hash(_ start: UnsafeRawPointer, _ count: Int) -> UInt32 {
        let factor: UInt64 = 0x9E37_79B9_7F4A_7C15
        var sum = UInt64(truncatingIfNeeded: count)
        var offset = 0
        while offset &+ 8 <= count {
            sum = (sum ^ WordCopy.word(start + offset)) &* factor
            sum ^= sum &>> 32
            offset &+= 8
        }
        while offset < count {
            sum = (sum ^ UInt64((start + offset).load(as: UInt8.self))) &* factor
            offset &+= 1
        }
        return UInt32(truncatingIfNeeded: sum &>> 32)
    }

    /// Whether the field, whose name is not in the static table, is about one connection (RFC 9113
    /// §8.2.2).
    func belongsToConnection(in section: HeaderEncoder.Section) -> Bool {
        switch nameCount {
        case 2: isNamed("te") && !(section == .request && isTrailers)
        case 7: isNamed("upgrade")
        case 10: isNamed("connection") || isNamed("keep-alive")
        case 14: isNamed("http2-settings")
        case 16: isNamed("proxy-connection")
        default: false
        }
    }

    private func isNamed(_ name: StaticString) -> Bool {
        StaticNames.isEqual(start, name.utf8Start, nameCount)
    }

    /// Whether the value is the only one that TE may have.
    private var isTrailers: Bool {
        let text: StaticString = "trailers"
        return valueCount == text.utf8CodeUnitCount
            && StaticNames.isEqual(value, text.utf8Start, valueCount)
    }
}

/// Bytes that the grammar names.
enum Byte {
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let colon: UInt8 = 0x3A
}
