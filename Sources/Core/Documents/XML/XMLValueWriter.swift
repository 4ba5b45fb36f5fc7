import HTTPCore

/// Writes a value as XML, following the convention of ``XMLValueReader`` in reverse: members
/// `@name` are attributes, `#text` is text, after the elements; an array is one element for each of
/// its values, none if it is empty; null is an empty element. Booleans and numbers are their text,
/// data is base64 and a date a string in RFC 3339 format.
///
/// A dictionary with one key whose value becomes one element is the document. Any other value is
/// wrapped in an element `root`, and the values of an array in `item` elements inside it.
public struct XMLValueWriter: DocumentSink {
    private var builder = DocumentBuilder()
    private let limits: DocumentLimits
    private var depth = 0

    /// Creates a writer for one value.
    public init(limits: DocumentLimits = .standard) {
        self.limits = limits
    }

    public mutating func null() throws(DocumentError) { try builder.null() }
    public mutating func boolean(_ value: Bool) throws(DocumentError) {
        try builder.boolean(value)
    }
    public mutating func number(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try builder.number(text)
    }
    public mutating func string(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try builder.string(text)
    }
    public mutating func data(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        try builder.data(bytes)
    }
    public mutating func date(_ seconds: Double) throws(DocumentError) {
        try builder.date(seconds)
    }
    public mutating func key(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        try builder.key(text)
    }

    public mutating func beginArray() throws(DocumentError) {
        try enter()
        try builder.beginArray()
    }

    public mutating func endArray() throws(DocumentError) {
        depth -= 1
        try builder.endArray()
    }

    public mutating func beginDictionary() throws(DocumentError) {
        try enter()
        try builder.beginDictionary()
    }

    public mutating func endDictionary() throws(DocumentError) {
        depth -= 1
        try builder.endDictionary()
    }

    private mutating func enter() throws(DocumentError) {
        let maximum = min(limits.depth, XMLTree.maximumDepth)
        guard depth < maximum else { throw DocumentError(.xml, .tooDeep(maximum: maximum)) }
        depth += 1
    }

    /// The document, in UTF-8, once the value is complete.
    ///
    /// - Throws: ``DocumentError`` if XML cannot represent the value, or a limit is exceeded.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        guard let value = builder.value else {
            throw DocumentError(.xml, .unrepresentable("no value"))
        }
        var elements = XMLValueElements(writer: XMLWriter(limits: limits))
        let (name, content) = Self.root(of: value)
        do {
            // The path of what is wrapped in `root` begins there.
            if case .dictionary(let all) = value, all.members.first?.key == name {
                elements.path.begin(isArray: false)
                elements.path.setKey(name)
            }
            try elements.write(name, content)
            return try elements.writer.finish()
        } catch {
            throw DocumentError(.xml, error.reason, path: elements.path.description)
        }
    }

    private static func root(of value: DocumentValue) -> (name: String, content: DocumentValue) {
        switch value {
        case .array: return ("root", .dictionary(["item": value]))
        case .dictionary(let dictionary):
            guard dictionary.members.count == 1, let only = dictionary.members.first,
                !only.key.hasPrefix("@"), only.key != "#text"
            else { return ("root", value) }
            guard case .array(let values) = only.value else { return (only.key, only.value) }
            return values.count == 1 ? (only.key, values[0]) : ("root", value)
        default: return ("root", value)
        }
    }
}

private struct XMLValueElements {
    var writer: XMLWriter
    /// The position of the value being written.
    var path = WritingPath()

    /// Writes an element. It recurses as deeply as the value, whose depth is limited.
    mutating func write(_ name: String, _ value: DocumentValue) throws(DocumentError) {
        try writer.start(name)
        switch value {
        case .dictionary(let dictionary): try writeMembers(dictionary)
        case .array: throw DocumentError(.xml, .unrepresentable("an array in an array"))
        default: try writer.text(Self.text(value))
        }
        try writer.end()
    }

    private mutating func writeMembers(_ dictionary: DocumentDictionary) throws(DocumentError) {
        path.begin(isArray: false)
        for member in dictionary.members where member.key.utf8.first == UInt8(ascii: "@") {
            path.setKey(member.key)
            try writer.attribute(
                String(member.key.unicodeScalars.dropFirst()),
                try Self.text(member.value, of: "an attribute"))
        }
        for member in dictionary.members
        where member.key.utf8.first != UInt8(ascii: "@") && member.key != "#text" {
            path.setKey(member.key)
            try writeMember(member.key, member.value)
        }
        if let value = dictionary["#text"] {
            path.setKey("#text")
            try writer.text(try Self.text(value, of: "a text"))
        }
        path.end()
    }

    private mutating func writeMember(
        _ key: String, _ value: DocumentValue
    ) throws(DocumentError) {
        guard case .array(let values) = value else { return try write(key, value) }
        path.begin(isArray: true)
        for value in values {
            path.next()
            try write(key, value)
        }
        path.end()
    }

    private static func text(
        _ value: DocumentValue, of what: String = ""
    ) throws(DocumentError) -> String {
        switch value {
        case .null: return ""
        case .boolean(let value): return value ? "true" : "false"
        case .number(let number): return number.text
        case .string(let text): return text
        case .data(let bytes): return Base64.encode(bytes)
        case .date(let seconds):
            guard let text = DateText.text(seconds) else {
                throw DocumentError(.xml, .unrepresentable("a date outside the years 0 to 9999"))
            }
            return text
        case .array, .dictionary:
            throw DocumentError(.xml, .unrepresentable("\(value.kind) as \(what)"))
        }
    }
}
