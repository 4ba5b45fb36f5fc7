/// Writes messages of Protocol Buffers (their "Encoding" page): each field is a tag, its number and
/// the kind of its value, and the value.
struct ProtobufWriter {
    /// What has been written.
    private(set) var bytes: [UInt8] = []

    /// The kinds of values that OTLP has.
    private enum Wire {
        static let varint: UInt64 = 0
        static let fixed64: UInt64 = 1
        static let length: UInt64 = 2
        static let fixed32: UInt64 = 5
    }

    /// Empties it, and keeps its storage.
    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    /// Writes a whole number in groups of seven bits, the least significant first.
    private mutating func append(varint number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func append(tag number: Int, _ wire: UInt64) {
        append(varint: UInt64(number) << 3 | wire)
    }

    private mutating func append(littleEndian number: UInt64, count: Int) {
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
    }

    /// A field of type uint64, int64 (0 or more), bool or enum.
    mutating func append(_ number: Int, varint value: UInt64) {
        append(tag: number, Wire.varint)
        append(varint: value)
    }

    /// A field of type fixed64.
    mutating func append(_ number: Int, fixed64 value: UInt64) {
        append(tag: number, Wire.fixed64)
        append(littleEndian: value, count: 8)
    }

    /// A field of type fixed32.
    mutating func append(_ number: Int, fixed32 value: UInt32) {
        append(tag: number, Wire.fixed32)
        append(littleEndian: UInt64(value), count: 4)
    }

    /// A field of type bytes, or a message that is already written.
    mutating func append(_ number: Int, bytes value: some Collection<UInt8>) {
        append(tag: number, Wire.length)
        append(varint: UInt64(value.count))
        bytes += value
    }

    /// Fields that are already written.
    mutating func append(encoded fields: [UInt8]) { bytes += fields }

    /// A field of type string.
    mutating func append(_ number: Int, text: String) { append(number, bytes: text.utf8) }

    /// A field of type bytes with the bytes of numbers, the most significant first.
    mutating func append(_ number: Int, bigEndian values: UInt64...) {
        append(tag: number, Wire.length)
        append(varint: UInt64(8 * values.count))
        for value in values { append(littleEndian: value.byteSwapped, count: 8) }
    }

    /// A field that is a message, which `body` writes. What is in it is moved once, to make room
    /// for its length.
    mutating func append(_ number: Int, message body: (inout ProtobufWriter) -> Void) {
        append(tag: number, Wire.length)
        let start = bytes.count
        body(&self)
        var length = ProtobufWriter()
        length.append(varint: UInt64(bytes.count - start))
        bytes.insert(contentsOf: length.bytes, at: start)
    }
}

/// Reads the fields of a message of Protocol Buffers, one after the other.
struct ProtobufReader {
    /// A field's value.
    enum Value: Equatable {
        case number(UInt64)
        /// Text, bytes, or a message.
        case bytes(ArraySlice<UInt8>)
    }

    private var rest: ArraySlice<UInt8>

    init(_ message: ArraySlice<UInt8>) { rest = message }

    /// The next field; `nil` at the end, and before anything that is not understood.
    mutating func next() -> (number: Int, value: Value)? {
        guard let tag = varint(), let number = Int(exactly: tag >> 3) else { return nil }
        switch tag & 7 {
        case 0: return varint().map { (number, .number($0)) }
        case 1: return fixed(8).map { (number, .number($0)) }
        case 2:
            guard let length = varint(), length <= UInt64(rest.count) else { return nil }
            let bytes = rest.prefix(Int(length))
            rest = rest.dropFirst(bytes.count)
            return (number, .bytes(bytes))
        case 5: return fixed(4).map { (number, .number($0)) }
        default: return nil
        }
    }

    private mutating func varint() -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            number |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return number }
        }
        return nil
    }

    private mutating func fixed(_ count: Int) -> UInt64? {
        guard rest.count >= count else { return nil }
        let number = rest.prefix(count).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(count)
        return number
    }
}
