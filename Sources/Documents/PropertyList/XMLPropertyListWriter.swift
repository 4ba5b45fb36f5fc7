/// Writes a property list as XML, line by line as Apple's programs do.
///
/// A number with a fraction or an exponent is `real`, with its digits; any other is `integer`, of
/// 64 bits with sign or without. Of a date the fraction of a second is cut off, for the form has
/// none. What a property list cannot say is ``DocumentError/Reason/unrepresentable(_:)``: null,
/// characters that XML has not (U+0000), dates outside of the years 0000 to 9999.
public struct XMLPropertyListWriter: DocumentSink {
    private var output: [UInt8]
    private let limits: DocumentLimits
    private var path = WritingPath()
    /// What is open, and whether it is an array.
    private var open: [Bool] = []
    /// Whether the innermost has begun and its tag is not written yet: an empty one has only one.
    private var isPending = false
    private var hasValue = false

    public init(limits: DocumentLimits = .standard) {
        self.limits = limits
        output = Array(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
            "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">\n
            """.utf8)
    }

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(.plist, reason, path: path.description)
    }

    // MARK: Lines

    private mutating func writePending() {
        guard isPending, let isArray = open.last else { return }
        isPending = false
        indent(open.count - 1)
        output.append(contentsOf: isArray ? "<array>\n".utf8 : "<dict>\n".utf8)
    }

    private mutating func indent(_ count: Int) {
        output.append(contentsOf: repeatElement(0x09, count: count))
    }

    private mutating func beginValue() {
        path.next()
        hasValue = true
        writePending()
        indent(open.count)
    }

    private mutating func endLine() throws(DocumentError) {
        output.append(0x0A)
        guard output.count <= limits.output else {
            throw error(.outputTooLarge(maximum: limits.output))
        }
    }

    private mutating func line(
        _ begin: StaticString, _ end: StaticString, _ text: UnsafeRawBufferPointer
    ) throws(DocumentError) {
        begin.withUTF8Buffer { output.append(contentsOf: $0) }
        if let unfit = XMLCharacters.unfit(in: text) { throw error(.unrepresentable(unfit)) }
        output.append(escaping: text, in: .content)
        end.withUTF8Buffer { output.append(contentsOf: $0) }
        try endLine()
    }

    // MARK: Values

    public mutating func null() throws(DocumentError) {
        path.next()
        throw error(.unrepresentable("null"))
    }

    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        beginValue()
        output.append(contentsOf: value ? "<true/>".utf8 : "<false/>".utf8)
        try endLine()
    }

    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        switch PropertyListNumber(text) {
        case .integer(let digits):
            try digits.withBytes { bytes throws(DocumentError) in
                try line("<integer>", "</integer>", bytes)
            }
        case .small: try line("<integer>", "</integer>", text)
        case .real: try line("<real>", "</real>", text)
        case nil: throw error(.numberOutOfRange(String(decoding: text, as: UTF8.self)))
        }
    }

    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        try line("<string>", "</string>", text)
    }

    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        path.setKey(text)
        writePending()
        indent(open.count)
        try line("<key>", "</key>", text)
    }

    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        beginValue()
        output.append(contentsOf: "<data>".utf8)
        try endLine()
        // Lines of at most 76 characters, a tab taken as 8, but no shorter than 16.
        let length = max(16, 76 - 8 * open.count) / 4 * 3
        var rest = bytes[...]
        while !rest.isEmpty {
            indent(open.count)
            Base64.append(rest.prefix(length), to: &output)
            rest = rest.dropFirst(length)
            try endLine()
        }
        indent(open.count)
        output.append(contentsOf: "</data>".utf8)
        try endLine()
    }

    public mutating func date(_ seconds: Double) throws(DocumentError) {
        beginValue()
        output.append(contentsOf: "<date>".utf8)
        guard DateText.append(seconds, withFraction: false, to: &output) else {
            throw error(.unrepresentable("a date outside of the years 0 to 9999"))
        }
        output.append(contentsOf: "</date>".utf8)
        try endLine()
    }

    // MARK: Containers

    private mutating func begin(isArray: Bool) throws(DocumentError) {
        path.next()
        hasValue = true
        writePending()
        guard open.count < limits.depth else { throw error(.tooDeep(maximum: limits.depth)) }
        open.append(isArray)
        isPending = true
        path.begin(isArray: isArray)
    }

    private mutating func end(_ empty: StaticString, _ end: StaticString) throws(DocumentError) {
        open.removeLast()
        path.end()
        indent(open.count)
        (isPending ? empty : end).withUTF8Buffer { output.append(contentsOf: $0) }
        isPending = false
        try endLine()
    }

    public mutating func beginArray() throws(DocumentError) { try begin(isArray: true) }
    public mutating func endArray() throws(DocumentError) { try end("<array/>", "</array>") }
    public mutating func beginDictionary() throws(DocumentError) { try begin(isArray: false) }
    public mutating func endDictionary() throws(DocumentError) { try end("<dict/>", "</dict>") }

    /// The property list.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard hasValue else { throw error(.unrepresentable("no value")) }
        output.append(contentsOf: "</plist>".utf8)
        try endLine()
        return output
    }
}

/// What a number of JSON is in a property list.
enum PropertyListNumber {
    /// An integer of at most 18 digits, as it is written.
    case small
    case integer(String)
    case real(Double)

    /// Nil where it is out of range: of 64 bits, or of double precision.
    init?(_ text: UnsafeRawBufferPointer) {
        var isReal = false
        for byte in text where byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e") {
            isReal = true
        }
        guard isReal else {
            if text.count <= 18, text.first != UInt8(ascii: "-") {
                self = .small
            } else {
                guard let digits = PropertyListInteger(text)?.digits else { return nil }
                self = .integer(digits)
            }
            return
        }
        guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else {
            return nil
        }
        self = .real(value)
    }
}
