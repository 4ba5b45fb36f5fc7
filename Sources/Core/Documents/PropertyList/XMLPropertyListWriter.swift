import HTTPCore

/// Writes a property list as XML, with the same lines as Apple's programs.
///
/// A number with a fraction or an exponent is `real`, with its digits; any other is `integer`, a
/// signed or unsigned 64-bit number. A date's fraction of a second is truncated, because the format
/// has none. What a property list cannot represent is ``DocumentError/Reason/unrepresentable(_:)``:
/// null, characters that XML does not allow (U+0000), dates outside the years 0000 to 9999.
public struct XMLPropertyListWriter: DocumentSink {
    /// An array or dictionary that is open; the outermost level is neither.
    private struct Open {
        var isArray = false
        /// For an array: the index of the current value.
        var index = -1
        /// Where the last key is in the output, escaped.
        var key = 0..<0
        /// Where its content begins in the output.
        var content = 0
    }

    private var output: OutputBytes
    private let limits: DocumentLimits
    /// The innermost open container, and those around it.
    private var inner = Open()
    private var outer: [Open] = []
    private var hasValue = false
    /// The number of tabs before a line.
    private var depth: Int { outer.count }

    /// - Parameters:
    ///   - limits: of these `depth` and `output` apply.
    ///   - capacity: the number of bytes for which space is reserved initially.
    public init(limits: DocumentLimits = .standard, capacity: Int = 512) {
        self.limits = limits
        output = OutputBytes(capacity: min(capacity, limits.output))
        output.append(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
            "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">\n
            """)
    }

    private func error(
        _ reason: DocumentError.Reason, key: UnsafeRawBufferPointer? = nil
    ) -> DocumentError {
        var path = WritingPath()
        for open in (outer + [inner]).dropFirst() {
            path.begin(isArray: open.isArray)
            if open.isArray { path.setIndex(open.index) }
            path.setKey(XMLUnescaping.text(output.text(open.key)))
        }
        if let key { path.setKey(key) }
        return DocumentError(.plist, reason, path: path.description)
    }

    // MARK: Lines

    private static let tab: UInt8 = 0x09
    private static let end: UInt8 = 0x0A

    private mutating func beginValue() {
        hasValue = true
        if inner.isArray { inner.index += 1 }
    }

    @inline(__always)
    private func checkSize() throws(DocumentError) {
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
    }

    /// A line without anything to escape.
    @inline(__always)
    private mutating func line(
        _ start: StaticString, _ text: UnsafeRawBufferPointer, _ end: StaticString
    ) throws(DocumentError) {
        let depth = depth
        output.write(atMost: depth + text.count + 32) {
            $0.put(Self.tab, times: depth)
            $0.put(start)
            $0.put(text)
            $0.put(end)
            $0.put(Self.end)
        }
        try checkSize()
    }

    @inline(__always)
    private mutating func line(_ text: StaticString) throws(DocumentError) {
        try line(text, UnsafeRawBufferPointer(start: nil, count: 0), "")
    }

    /// - Parameter key: the same text if it is a key.
    private mutating func escapedLine(
        _ start: StaticString, _ text: UnsafeRawBufferPointer, _ end: StaticString,
        key: UnsafeRawBufferPointer? = nil
    ) throws(DocumentError) {
        let depth = depth
        output.write(atMost: depth + 16) {
            $0.put(Self.tab, times: depth)
            $0.put(start)
        }
        if let unfit = output.append(escaping: text, in: .content) {
            throw error(.unrepresentable(unfit), key: key)
        }
        output.append(end)
        output.append(Self.end)
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output), key: key)
        }
    }

    // MARK: Values

    public mutating func null() throws(DocumentError) {
        beginValue()
        throw error(.unrepresentable("null"))
    }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        beginValue()
        if value { try line("<true/>") } else { try line("<false/>") }
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        switch PropertyListNumber(text) {
        case .integer(let digits):
            try digits.withBytes { bytes throws(DocumentError) in
                try line("<integer>", bytes, "</integer>")
            }
        case .small: try line("<integer>", text, "</integer>")
        case .real: try line("<real>", text, "</real>")
        case nil: throw error(.numberOutOfRange(String(decoding: text, as: UTF8.self)))
        }
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        if XMLEscaping.content.nextSpecial(in: text, from: 0) == text.count {
            try line("<string>", text, "</string>")
        } else {
            try escapedLine("<string>", text, "</string>")
        }
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        let start = output.count + depth + 5
        if XMLEscaping.content.nextSpecial(in: text, from: 0) == text.count {
            inner.key = start..<start + text.count
            try line("<key>", text, "</key>")
        } else {
            try escapedLine("<key>", text, "</key>", key: text)
            inner.key = start..<output.count - 7
        }
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        try line("<data>")
        // Lines of at most 76 characters, counting a tab as 8, but not shorter than 16.
        let length = max(16, 76 - 8 * depth) / 4 * 3
        var rest = bytes[...]
        while !rest.isEmpty {
            let part = UnsafeRawBufferPointer(rebasing: rest.prefix(length))
            let depth = depth
            output.write(atMost: depth + Base64.count(part.count) + 1) { cursor in
                cursor.put(Self.tab, times: depth)
                Base64.write(part) { cursor.put($0) }
                cursor.put(Self.end)
            }
            try checkSize()
            rest = rest.dropFirst(length)
        }
        try line("</data>")
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        beginValue()
        let depth = depth
        output.write(atMost: depth + 6) {
            $0.put(Self.tab, times: depth)
            $0.put("<date>")
        }
        guard DateText.append(seconds, withFraction: false, to: &output) else {
            throw error(.unrepresentable("a date outside the years 0 to 9999"))
        }
        output.append("</date>\n")
        try checkSize()
    }

    // MARK: Containers

    private mutating func begin(isArray: Bool) throws(DocumentError) {
        beginValue()
        let depth = depth
        guard depth < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        output.write(atMost: depth + 8) {
            $0.put(Self.tab, times: depth)
            if isArray { $0.put("<array>") } else { $0.put("<dict>") }
            $0.put(Self.end)
        }
        outer.append(inner)
        inner = Open(isArray: isArray, content: output.count)
    }

    private mutating func end(isArray: Bool) throws(DocumentError) {
        let isEmpty = output.count == inner.content
        inner = outer.removeLast()
        if isEmpty {
            // Use the tag of an empty container instead: replaces `>` and the end of the line.
            output.cut(to: output.count - 2)
            output.append("/>\n")
            try checkSize()
        } else if isArray {
            try line("</array>")
        } else {
            try line("</dict>")
        }
    }

    public mutating func beginArray() throws(DocumentError) { try begin(isArray: true) }
    public mutating func endArray() throws(DocumentError) { try end(isArray: true) }
    public mutating func beginDictionary() throws(DocumentError) { try begin(isArray: false) }
    public mutating func endDictionary() throws(DocumentError) { try end(isArray: false) }

    /// The property list.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard hasValue else { throw error(.unrepresentable("no value")) }
        output.append("</plist>\n")
        try checkSize()
        return output.take()
    }
}
