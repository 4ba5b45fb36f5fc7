/// Writes a document as JSON (RFC 8259): UTF-8, without white space and byte order mark.
///
/// JSON has neither data nor dates. Data is a string in Base64 (RFC 4648, section 4, padded), a
/// date a string by RFC 3339 in UTC: `2026-11-22T23:05:53Z`, with a part of a second in as few
/// digits as it needs, six at most. Of characters only the quotation mark, the backslash and those
/// below U+0020 are escaped.
public struct JSONWriter: DocumentSink {
    /// An array or dictionary that has begun.
    private struct Open {
        var isDictionary: Bool
        /// Elements or keys so far.
        var count = 0
        /// Where the last key begins in the output.
        var key = 0
    }

    private let limits: DocumentLimits
    private var output: [UInt8] = []
    private var open: [Open] = []
    private var hasValue = false

    /// - Parameters:
    ///   - limits: of these `depth` and `output` hold here.
    ///   - capacity: the bytes for which there is room from the start.
    public init(limits: DocumentLimits = .standard, capacity: Int = 512) {
        self.limits = limits
        output.reserveCapacity(min(capacity, limits.output))
    }

    /// The text.
    ///
    /// - Throws: `malformed` where the value is not whole.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard hasValue, open.isEmpty else { throw error(.malformed("the value is not whole")) }
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
        return output
    }

    /// A value as JSON.
    public static func bytes(
        of value: DocumentValue, limits: DocumentLimits = .standard
    ) throws(DocumentError) -> [UInt8] {
        var writer = JSONWriter(limits: limits)
        try value.replay(into: &writer)
        return try writer.finish()
    }

    // MARK: - Events

    public mutating func null() throws(DocumentError) { try literal("null") }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        try literal(value ? "true" : "false")
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try beginValue(bytes: text.count)
        output.append(contentsOf: text)
        endValue()
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try beginValue(bytes: text.count + 2)
        try quote(text)
        endValue()
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try beginValue(bytes: Base64.count(bytes.count) + 2)
        output.append(Self.mark)
        Base64.append(bytes[...], to: &output)
        output.append(Self.mark)
        endValue()
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        guard let text = DateText.text(seconds) else {
            throw error(.unrepresentable("a date outside of the years 0000 to 9999"))
        }
        try text.withBytes { bytes throws(DocumentError) in try string(bytes) }
    }

    public mutating func beginArray() throws(DocumentError) { try begin(isDictionary: false) }
    public mutating func beginDictionary() throws(DocumentError) { try begin(isDictionary: true) }
    public mutating func endArray() throws(DocumentError) { try end(UInt8(ascii: "]")) }
    public mutating func endDictionary() throws(DocumentError) { try end(UInt8(ascii: "}")) }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard let last = open.indices.last else { return }
        try check(bytes: text.count + 4)
        if open[last].count > 0 { output.append(Self.comma) }
        open[last].count += 1
        open[last].key = output.count
        try quote(text)
        output.append(UInt8(ascii: ":"))
    }

    // MARK: - Parts

    private static let mark = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")

    private mutating func literal(_ text: StaticString) throws(DocumentError) {
        try beginValue(bytes: text.utf8CodeUnitCount)
        text.withUTF8Buffer { output.append(contentsOf: $0) }
        endValue()
    }

    private mutating func begin(isDictionary: Bool) throws(DocumentError) {
        try beginValue(bytes: 2)
        guard open.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        output.append(isDictionary ? UInt8(ascii: "{") : UInt8(ascii: "["))
        open.append(Open(isDictionary: isDictionary))
    }

    private mutating func end(_ byte: UInt8) throws(DocumentError) {
        try check(bytes: 1)
        output.append(byte)
        _ = open.popLast()
        endValue()
    }

    /// What stands before a value of so many bytes.
    private mutating func beginValue(bytes: Int) throws(DocumentError) {
        try check(bytes: bytes + 1)
        if let last = open.last, !last.isDictionary, last.count > 0 { output.append(Self.comma) }
    }

    private mutating func endValue() {
        hasValue = true
        guard let last = open.indices.last, !open[last].isDictionary else { return }
        open[last].count += 1
    }

    private func check(bytes: Int) throws(DocumentError) {
        // Each value is counted with a comma. Where none is, its array or dictionary has an end;
        // where there is neither, one byte too many is found when the value is finished.
        guard output.count + bytes - (open.isEmpty ? 1 : 0) <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
    }

    private mutating func quote(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        output.append(Self.mark)
        var start = 0
        while true {
            let next = Self.nextEscape(text, from: start)
            output.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[start..<next]))
            guard next < text.count else { break }
            escape(text[next])
            start = next + 1
            try check(bytes: text.count - start + 1)
        }
        output.append(Self.mark)
    }

    private mutating func escape(_ byte: UInt8) {
        output.append(UInt8(ascii: "\\"))
        switch byte {
        case Self.mark, UInt8(ascii: "\\"): output.append(byte)
        case 0x08: output.append(UInt8(ascii: "b"))
        case 0x09: output.append(UInt8(ascii: "t"))
        case 0x0A: output.append(UInt8(ascii: "n"))
        case 0x0C: output.append(UInt8(ascii: "f"))
        case 0x0D: output.append(UInt8(ascii: "r"))
        default:
            output.append(contentsOf: "u00".utf8)
            output.append(UInt8(ascii: "0") + byte >> 4)
            let low = byte & 15
            output.append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        }
    }

    /// The index of the next byte that is escaped, or the count. Looks at eight bytes at once: a
    /// byte has its high bit set where it is below 0x20, or one of the two marks.
    private static func nextEscape(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var index = start
        while index + 8 <= text.count {
            let word = text.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let marks = word ^ (ones &* 0x22)
            let slashes = word ^ (ones &* 0x5C)
            let found =
                ((word &- ones &* 0x20) & ~word | (marks &- ones) & ~marks
                    | (slashes &- ones) & ~slashes) & highs
            if found != 0 { break }
            index += 8
        }
        while index < text.count, text[index] >= 0x20, text[index] != 0x22, text[index] != 0x5C {
            index += 1
        }
        return index
    }

    // MARK: - Errors

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        var path = DocumentPath()
        for step in open {
            guard step.isDictionary else {
                path.append(step.count)
                continue
            }
            guard step.count > 0 else { break }
            let key = output[(step.key + 1)...]
            path.append(name: String(decoding: key.prefix { $0 != Self.mark }, as: UTF8.self))
        }
        return DocumentError(.json, reason, path: path.text)
    }
}
