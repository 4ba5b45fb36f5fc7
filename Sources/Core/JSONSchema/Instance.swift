import Documents

/// The kind of a value.
enum InstanceKind: UInt8 {
    case null
    case boolean
    case number
    case string
    case array
    case object
}

/// A JSON value as one array of its values in the order of the text, each container before its
/// contents. Most strings are ranges of the text, which must not change.
final class Instance {
    struct Value {
        var kind: InstanceKind
        /// Whether the bytes are stored here rather than in the text; for a Boolean, its value.
        var flag = false
        /// Whether the name's bytes are stored here.
        var hasOwnName = false
        /// The offset and number of bytes of a string or number.
        var offset: UInt32 = 0
        var length: UInt32 = 0
        /// The bytes of its name, if it is a member.
        var nameOffset: UInt32 = 0
        var nameLength: UInt32 = 0
        /// The number of elements or members.
        var count: UInt32 = 0
        /// The index after this value and its contents.
        var end: UInt32 = 0
    }

    private(set) var values: [Value] = []
    private let text: UnsafeRawBufferPointer
    /// Strings whose escapes were decoded.
    private var arena = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var used = 0
    private var open: [Int] = []
    private var name: (offset: UInt32, length: UInt32, isOwn: Bool)?

    /// - Throws: if it is not JSON, or exceeds the limits.
    init(
        _ text: UnsafeRawBufferPointer, limits: DocumentLimits
    ) throws(DocumentError) {
        self.text = text
        values.reserveCapacity(min(text.count / 8, 1 << 20) + 1)
        var sink = InstanceSink(instance: self)
        try JSONDocument.read(text, limits: limits, into: &sink)
    }

    /// Creates an instance from a value in a schema.
    init(_ value: DocumentValue) throws(DocumentError) {
        text = UnsafeRawBufferPointer(start: nil, count: 0)
        var sink = InstanceSink(instance: self)
        try value.replay(into: &sink)
    }

    /// Creates an instance from one string, whose bytes must not change.
    init(string: UnsafeRawBufferPointer) {
        text = string
        add(.string, string)
    }

    deinit { arena.deallocate() }

    /// The bytes of a string or number, valid as long as the instance is.
    func bytes(_ value: Value) -> UnsafeRawBufferPointer {
        slice(value.offset, value.length, isOwn: value.flag)
    }

    /// The bytes of a member's name.
    func name(_ value: Value) -> UnsafeRawBufferPointer {
        slice(value.nameOffset, value.nameLength, isOwn: value.hasOwnName)
    }

    private func slice(
        _ offset: UInt32, _ length: UInt32, isOwn: Bool
    ) -> UnsafeRawBufferPointer {
        let all = isOwn ? UnsafeRawBufferPointer(arena) : text
        return UnsafeRawBufferPointer(
            start: all.baseAddress.map { $0 + Int(offset) }, count: Int(length))
    }
}

/// Converts the events of a text to the values of an instance.
private struct InstanceSink: DocumentSink {
    let instance: Instance

    mutating func null() { instance.add(.init(kind: .null)) }
    mutating func boolean(_ value: Bool) { instance.add(.init(kind: .boolean, flag: value)) }
    mutating func number(_ text: UnsafeRawBufferPointer) { instance.add(.number, text) }
    mutating func string(_ text: UnsafeRawBufferPointer) { instance.add(.string, text) }
    mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        throw DocumentError(.json, .unrepresentable("data"))
    }
    mutating func date(_ seconds: Double) throws(DocumentError) {
        throw DocumentError(.json, .unrepresentable("a date"))
    }
    mutating func beginArray() { instance.begin(.array) }
    mutating func endArray() { instance.end() }
    mutating func beginDictionary() { instance.begin(.object) }
    mutating func key(_ text: UnsafeRawBufferPointer) { instance.key(text) }
    mutating func endDictionary() { instance.end() }
}

extension Instance {
    fileprivate func add(_ value: Value) {
        var value = value
        value.end = UInt32(values.count + 1)
        if let name {
            (value.nameOffset, value.nameLength, value.hasOwnName) = name
            self.name = nil
        }
        if let container = open.last { values[container].count += 1 }
        values.append(value)
    }

    fileprivate func add(_ kind: InstanceKind, _ bytes: UnsafeRawBufferPointer) {
        let (offset, length, isOwn) = place(bytes)
        add(Value(kind: kind, flag: isOwn, offset: offset, length: length))
    }

    fileprivate func begin(_ kind: InstanceKind) {
        add(Value(kind: kind))
        open.append(values.count - 1)
    }

    fileprivate func end() { values[open.removeLast()].end = UInt32(values.count) }

    fileprivate func key(_ bytes: UnsafeRawBufferPointer) { name = place(bytes) }

    /// Where an event's bytes are, or where they are stored from now on.
    private func place(
        _ bytes: UnsafeRawBufferPointer
    ) -> (offset: UInt32, length: UInt32, isOwn: Bool) {
        let length = UInt32(bytes.count)
        guard let start = bytes.baseAddress, !bytes.isEmpty else { return (0, 0, false) }
        if let base = text.baseAddress, start >= base, start < base + text.count {
            return (UInt32(start - base), length, false)
        }
        if arena.count - used < bytes.count { growArena(by: bytes.count) }
        UnsafeMutableRawBufferPointer(rebasing: arena[used...]).copyMemory(from: bytes)
        used += bytes.count
        return (UInt32(used - bytes.count), length, true)
    }

    private func growArena(by count: Int) {
        let grown = UnsafeMutableRawBufferPointer.allocate(
            byteCount: max(256, arena.count * 2, used + count), alignment: 1)
        grown.copyMemory(from: UnsafeRawBufferPointer(rebasing: arena[..<used]))
        arena.deallocate()
        arena = grown
    }
}
