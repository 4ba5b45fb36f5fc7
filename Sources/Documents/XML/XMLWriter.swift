/// Writes XML 1.0 in UTF-8, element by element. What XML cannot say, names that are none and
/// characters that no document can have, is ``DocumentError/Reason/unrepresentable(_:)``.
public struct XMLWriter {
    private var output: [UInt8]
    private let maximum: Int
    /// The names of the elements that are open, one behind the other, and where each begins.
    private var names: [UInt8] = []
    private var nameStarts: [Int] = []
    /// Whether the last tag is not ended, so that it can take attributes.
    private var isInTag = false
    /// The names of the attributes of the last tag.
    private var attributes = KeySets()
    private var hasRoot = false

    /// - Parameter limits: `output` bounds what is written.
    public init(limits: DocumentLimits = .standard) {
        maximum = limits.output
        output = Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".utf8)
    }

    /// Begins an element, the root or one in that which is open.
    public mutating func start(_ name: String) throws(DocumentError) {
        guard !hasRoot || !nameStarts.isEmpty else {
            throw DocumentError(.xml, .unrepresentable("a second root element"))
        }
        hasRoot = true
        try endTag()
        output.append(UInt8(ascii: "<"))
        nameStarts.append(names.count)
        try appendName(name)
        names.append(contentsOf: name.utf8)
        isInTag = true
        attributes.end()
        attributes.begin()
    }

    /// Adds an attribute to the element that has just begun.
    public mutating func attribute(_ name: String, _ value: String) throws(DocumentError) {
        precondition(isInTag, "an attribute comes after its element's start")
        let isNew = try name.withBytes { bytes throws(DocumentError) in attributes.insert(bytes) }
        guard isNew else { throw DocumentError(.xml, .duplicateKey(name)) }
        output.append(UInt8(ascii: " "))
        try appendName(name)
        output.append(contentsOf: "=\"".utf8)
        try value.withBytes { bytes throws(DocumentError) in
            try appendEscaped(bytes, in: .attribute)
        }
        output.append(UInt8(ascii: "\""))
    }

    /// Adds text to the element that is open.
    public mutating func text(_ text: String) throws(DocumentError) {
        try text.withBytes { bytes throws(DocumentError) in try self.text(bytes) }
    }

    /// Adds text in UTF-8 to the element that is open.
    public mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        precondition(!nameStarts.isEmpty, "text is within an element")
        guard !text.isEmpty else { return }
        try endTag()
        try appendEscaped(text, in: .content)
    }

    /// Ends the element that is open.
    public mutating func end() throws(DocumentError) {
        guard let start = nameStarts.popLast() else { return }
        if isInTag {
            output.append(contentsOf: "/>".utf8)
            isInTag = false
        } else {
            output.append(contentsOf: "</".utf8)
            output.append(contentsOf: names[start...])
            output.append(UInt8(ascii: ">"))
        }
        names.removeLast(names.count - start)
        try checkSize()
    }

    /// The document.
    public mutating func finish() throws(DocumentError) -> [UInt8] {
        precondition(hasRoot && nameStarts.isEmpty, "every element ends")
        output.append(UInt8(ascii: "\n"))
        try checkSize()
        return output
    }

    private mutating func endTag() throws(DocumentError) {
        guard isInTag else { return }
        output.append(UInt8(ascii: ">"))
        isInTag = false
    }

    private mutating func appendName(_ name: String) throws(DocumentError) {
        try name.withBytes { bytes throws(DocumentError) in
            guard XMLCharacters.isName(bytes) else {
                throw DocumentError(.xml, .unrepresentable("the name \"\(name.prefix(40))\""))
            }
            output.append(contentsOf: bytes)
        }
    }

    private mutating func appendEscaped(
        _ text: UnsafeRawBufferPointer, in place: XMLEscaping
    ) throws(DocumentError) {
        if let unfit = XMLCharacters.unfit(in: text) {
            throw DocumentError(.xml, .unrepresentable(unfit))
        }
        output.append(escaping: text, in: place)
        try checkSize()
    }

    private func checkSize() throws(DocumentError) {
        guard output.count <= maximum else {
            throw DocumentError(.xml, .outputTooLarge(maximum: maximum))
        }
    }
}

/// Where text is written, which says what must be escaped so that it is read as it was.
enum XMLEscaping {
    case content
    case attribute

    fileprivate func replacement(of byte: UInt8) -> StaticString? {
        switch byte {
        case UInt8(ascii: "&"): "&amp;"
        case UInt8(ascii: "<"): "&lt;"
        case UInt8(ascii: ">"): "&gt;"
        case 0x0D: "&#13;"
        case UInt8(ascii: "\"") where self == .attribute: "&quot;"
        case 0x09 where self == .attribute: "&#9;"
        case 0x0A where self == .attribute: "&#10;"
        default: nil
        }
    }
}

extension [UInt8] {
    /// Adds text of XML, of which all characters are known to be fit.
    mutating func append(escaping text: UnsafeRawBufferPointer, in place: XMLEscaping) {
        var start = 0
        for (index, byte) in text.enumerated() where byte <= UInt8(ascii: ">") {
            guard let replacement = place.replacement(of: byte) else { continue }
            append(contentsOf: text[start..<index])
            replacement.withUTF8Buffer { append(contentsOf: $0) }
            start = index + 1
        }
        append(contentsOf: text[start...])
    }
}
