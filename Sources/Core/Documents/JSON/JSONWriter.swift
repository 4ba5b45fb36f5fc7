import HTTPCore

/// Writes a document as JSON (RFC 8259): UTF-8, without white space or byte order mark.
///
/// JSON has neither data nor dates. Data is a base64 string (RFC 4648 §4, padded), a date a string
/// in UTC in RFC 3339 format: `2026-11-22T23:05:53Z`, with a fraction of a second in as few digits
/// as necessary, at most six. Only the quotation mark, the backslash and the characters below
/// U+0020 are escaped.
public struct JSONWriter: DocumentSink {
    /// An array or dictionary that has begun; the outermost level is neither.
    private struct Open {
        var isArray = false
        /// The number of elements or keys so far.
        var count = 0
        /// Where the last key begins in the output.
        var key = 0
    }

    private let limits: DocumentLimits
    private var output: OutputBytes
    /// The innermost open container, and those around it.
    private var inner = Open()
    private var outer: [Open] = []
    private var hasValue = false

    /// - Parameters:
    ///   - limits: of these `depth` and `output` apply.
    ///   - capacity: the number of bytes for which space is reserved initially.
    public init(limits: DocumentLimits = .standard, capacity: Int = 512) {
        self.limits = limits
        output = OutputBytes(capacity: min(capacity, limits.output))
    }

    /// The text.
    ///
    /// - Throws: `malformed` if the value is incomplete.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard hasValue, outer.isEmpty else { throw error(.malformed("the value is incomplete")) }
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
        return output.take()
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
        try check(bytes: text.count + 1)
        let hasComma = followsElement
        output.write(atMost: text.count + 1) {
            if hasComma { $0.put(Self.comma) }
            $0.put(text)
        }
        endValue()
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try check(bytes: text.count + 3)
        try quote(text, hasComma: followsElement)
        endValue()
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        let count = Base64.count(bytes.count)
        try check(bytes: count + 3)
        let hasComma = followsElement
        output.write(atMost: count + 3) { cursor in
            if hasComma { cursor.put(Self.comma) }
            cursor.put(Self.mark)
            Base64.write(bytes) { cursor.put($0) }
            cursor.put(Self.mark)
        }
        endValue()
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        guard let text = DateText.text(seconds) else {
            throw error(.unrepresentable("a date outside the years 0000 to 9999"))
        }
        try text.withBytes { bytes throws(DocumentError) in try string(bytes) }
    }

    public mutating func beginArray() throws(DocumentError) { try begin(isArray: true) }
    public mutating func beginDictionary() throws(DocumentError) { try begin(isArray: false) }
    public mutating func endArray() throws(DocumentError) { try end(UInt8(ascii: "]")) }
    public mutating func endDictionary() throws(DocumentError) { try end(UInt8(ascii: "}")) }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        guard !outer.isEmpty else { return }
        try check(bytes: text.count + 4)
        let hasComma = inner.count > 0
        inner.count += 1
        inner.key = output.count + (hasComma ? 1 : 0)
        try quote(text, hasComma: hasComma)
        output.append(UInt8(ascii: ":"))
    }

    // MARK: - Parts

    private static let mark = UInt8(ascii: "\"")
    private static let comma = UInt8(ascii: ",")

    private mutating func literal(_ text: StaticString) throws(DocumentError) {
        try check(bytes: text.utf8CodeUnitCount + 1)
        let hasComma = followsElement
        output.write(atMost: text.utf8CodeUnitCount + 1) {
            if hasComma { $0.put(Self.comma) }
            $0.put(text)
        }
        endValue()
    }

    private mutating func begin(isArray: Bool) throws(DocumentError) {
        try check(bytes: 3)
        let hasComma = followsElement
        guard outer.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        output.write(atMost: 2) {
            if hasComma { $0.put(Self.comma) }
            $0.put(isArray ? UInt8(ascii: "[") : UInt8(ascii: "{"))
        }
        outer.append(inner)
        inner = Open(isArray: isArray)
    }

    private mutating func end(_ byte: UInt8) throws(DocumentError) {
        try check(bytes: 1)
        output.append(byte)
        if let last = outer.popLast() { inner = last }
        endValue()
    }

    /// Whether a comma must precede the next value.
    private var followsElement: Bool { inner.isArray && inner.count > 0 }

    private mutating func endValue() {
        hasValue = true
        if inner.isArray { inner.count += 1 }
    }

    private func check(bytes: Int) throws(DocumentError) {
        // Each value is counted with a comma. If there is none, the end of its array or dictionary
        // takes its place; if there is neither, one excess byte is detected when the value is
        // finished.
        guard output.count + bytes - (outer.isEmpty ? 1 : 0) <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
    }

    private mutating func quote(
        _ text: UnsafeRawBufferPointer, hasComma: Bool
    ) throws(DocumentError) {
        var next = Self.nextEscape(text, from: 0)
        output.write(atMost: next + 3) {
            if hasComma { $0.put(Self.comma) }
            $0.put(Self.mark)
            $0.put(UnsafeRawBufferPointer(start: text.baseAddress, count: next))
            if next == text.count { $0.put(Self.mark) }
        }
        guard next < text.count else { return }
        while next < text.count {
            escape(text[next])
            let start = next + 1
            try check(bytes: text.count - start + 1)
            next = Self.nextEscape(text, from: start)
            output.append(UnsafeRawBufferPointer(rebasing: text[start..<next]))
        }
        output.append(Self.mark)
    }

    private mutating func escape(_ byte: UInt8) {
        switch byte {
        case Self.mark: output.append("\\\"")
        case UInt8(ascii: "\\"): output.append("\\\\")
        case 0x08: output.append("\\b")
        case 0x09: output.append("\\t")
        case 0x0A: output.append("\\n")
        case 0x0C: output.append("\\f")
        case 0x0D: output.append("\\r")
        default:
            let low = byte & 15
            output.write(atMost: 6) {
                $0.put("\\u00")
                $0.put(UInt8(ascii: "0") + byte >> 4)
                $0.put(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
            }
        }
    }

    /// The index of the next byte that must be escaped, or the count.
    private static func nextEscape(_ text: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index &+ 8 <= text.count {
            let bytes = EightBytes(text, at: index)
            let found =
                bytes.marks(below: 0x20) | bytes.marks(of: Self.mark)
                | bytes.marks(of: UInt8(ascii: "\\"))
            if found != 0 { break }
            index &+= 8
        }
        while index < text.count, text[index] >= 0x20, text[index] != 0x22, text[index] != 0x5C {
            index &+= 1
        }
        return index
    }

    // MARK: - Errors

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        var path = DocumentPath()
        for step in (outer + [inner]).dropFirst() {
            guard !step.isArray else {
                path.append(step.count)
                continue
            }
            guard step.count > 0 else { break }
            let key = output.withBytes { bytes in
                String(
                    decoding: bytes[(step.key + 1)...].prefix { $0 != Self.mark }, as: UTF8.self)
            }
            path.append(name: key)
        }
        return DocumentError(.json, reason, path: path.text)
    }
}
