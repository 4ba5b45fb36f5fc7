/// An output buffer. Space for a group of bytes is reserved once, which checks once whether the
/// memory is shared: an array checks at every append.
struct OutputBytes {
    private var memory: [UInt8] = []

    /// - Parameter capacity: the number of bytes for which space is reserved initially.
    init(capacity: Int) { memory.reserveCapacity(max(0, capacity)) }

    var count: Int { memory.count }

    /// Lets `body` write at most `room` bytes.
    @inline(__always)
    mutating func write(atMost room: Int, _ body: (inout ByteCursor) -> Void) {
        memory.append(addingCapacity: room) { span in
            span.withUnsafeMutableBufferPointer { room, count in
                guard let start = room.baseAddress else { return }
                var cursor = ByteCursor(start + count)
                body(&cursor)
                count += cursor.count
                precondition(count <= room.count, "no more is written than was asked for")
            }
        }
    }

    mutating func append(_ byte: UInt8) { write(atMost: 1) { $0.put(byte) } }

    mutating func append(_ text: StaticString) {
        write(atMost: text.utf8CodeUnitCount) { $0.put(text) }
    }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        write(atMost: bytes.count) { $0.put(bytes) }
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append(UnsafeRawBufferPointer($0)) }
    }

    /// Removes all bytes from an index on.
    mutating func cut(to index: Int) { memory.removeLast(max(0, memory.count - index)) }

    /// The bytes so far, valid during the call.
    @inline(__always)
    func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        memory.withUnsafeBytes(body)
    }

    /// A range of the bytes as text.
    func text(_ range: Range<Int>) -> String {
        String(decoding: memory[range], as: UTF8.self)
    }

    /// The same for closures that throw.
    func withText(
        _ body: (UnsafeRawBufferPointer) throws(DocumentError) -> Void
    ) throws(DocumentError) {
        try memory.withBytes(body)
    }

    /// Returns the bytes and leaves the buffer empty.
    mutating func take() -> [UInt8] {
        var taken: [UInt8] = []
        swap(&taken, &memory)
        return taken
    }
}

/// A position for writing into memory that has enough space.
struct ByteCursor {
    private let start: UnsafeMutableRawPointer
    /// The number of bytes written.
    private(set) var count = 0

    fileprivate init(_ start: UnsafeMutablePointer<UInt8>) {
        self.start = UnsafeMutableRawPointer(start)
    }

    @inline(__always)
    mutating func put(_ byte: UInt8) {
        start.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    @inline(__always)
    mutating func put(_ text: StaticString) {
        (start + count).copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
        count &+= text.utf8CodeUnitCount
    }

    @inline(__always)
    mutating func put(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        (start + count).copyMemory(from: source, byteCount: bytes.count)
        count &+= bytes.count
    }

    @inline(__always)
    mutating func put(_ byte: UInt8, times: Int) {
        (start + count).initializeMemory(as: UInt8.self, repeating: byte, count: times)
        count &+= times
    }

    /// Writes a number of 1, 2, 4 or 8 bytes, most significant first.
    @inline(__always)
    mutating func put(_ value: UInt64, bytes width: Int) {
        let place = start + count
        switch width {
        case 1: place.storeBytes(of: UInt8(truncatingIfNeeded: value), as: UInt8.self)
        case 2: place.storeBytes(of: UInt16(truncatingIfNeeded: value).bigEndian, as: UInt16.self)
        case 4: place.storeBytes(of: UInt32(truncatingIfNeeded: value).bigEndian, as: UInt32.self)
        default: place.storeBytes(of: value.bigEndian, as: UInt64.self)
        }
        count &+= width
    }
}
