import HTTPCore

@testable import HTTP2

/// A decoded field.
struct DecodedField: Equatable, CustomStringConvertible {
    var name: [UInt8]
    var value: [UInt8]
    var isSensitive = false

    init(_ name: String, _ value: String, isSensitive: Bool = false) {
        self.init(name: Array(name.utf8), value: Array(value.utf8), isSensitive: isSensitive)
    }

    init(name: [UInt8], value: [UInt8], isSensitive: Bool = false) {
        (self.name, self.value, self.isSensitive) = (name, value, isSensitive)
    }

    var description: String {
        String(decoding: name, as: UTF8.self) + ": " + String(decoding: value, as: UTF8.self)
            + (isSensitive ? " (never indexed)" : "")
    }
}

/// Collects the fields of blocks.
struct FieldCollector: ~Copyable, FieldSink {
    private(set) var fields: [DecodedField] = []

    mutating func take(_ line: HeaderLine) {
        let whole = UnsafeRawBufferPointer(start: line.start, count: line.count)
        precondition(
            whole.elementsEqual(
                Array(line.name) + [0x3A, 0x20] + Array(line.valueBytes) + [0x0D, 0x0A]))
        fields.append(
            DecodedField(
                name: Array(line.name), value: Array(line.valueBytes),
                isSensitive: line.isSensitive))
    }
}

/// The bytes that hexadecimal digits write; spaces are passed over.
func hex(_ text: String) -> [UInt8] {
    let digits = text.utf8.compactMap(ASCII.hexValue)
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// What a decoder reads of a block.
func fields(
    of block: [UInt8], by decoder: inout HeaderDecoder
) throws(HeaderCompressionError) -> [DecodedField] {
    var collector = FieldCollector()
    try decoder.decodeFields(block.span, into: &collector)
    return collector.fields
}

/// Why a decoder refuses a block; `nil` if it does not.
func fault(
    of block: [UInt8], by decoder: inout HeaderDecoder
) -> HeaderCompressionError? {
    do throws(HeaderCompressionError) {
        try decoder.discard(block.span)
        return nil
    } catch {
        return error
    }
}
