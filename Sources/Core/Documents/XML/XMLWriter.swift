/// Writes XML 1.0 in UTF-8, element by element. What XML cannot represent (invalid names, and
/// characters that no document may contain) is ``DocumentError/Reason/unrepresentable(_:)``.
public struct XMLWriter {
    private var output = OutputBytes(capacity: 512)
    private let maximum: Int
    /// The names of the open elements, one after another, and where each begins.
    private var names: [UInt8] = []
    private var nameStarts: [Int] = []
    /// Whether the last tag is still open, so that attributes can be added.
    private var isInTag = false
    /// The names of the attributes in the last tag.
    private var attributes = KeySets()
    private var hasRoot = false

    /// - Parameter limits: `output` limits what is written.
    public init(limits: DocumentLimits = .standard) {
        maximum = limits.output
        output.append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")
    }

    /// Begins an element: the root, or a child of the open element.
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
        output.append("=\"")
        try value.withBytes { bytes throws(DocumentError) in
            try appendEscaped(bytes, in: .attribute)
        }
        output.append(UInt8(ascii: "\""))
    }

    /// Adds text to the open element.
    public mutating func text(_ text: String) throws(DocumentError) {
        try text.withBytes { bytes throws(DocumentError) in try self.text(bytes) }
    }

    /// Adds UTF-8 text to the open element.
    public mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        precondition(!nameStarts.isEmpty, "text is within an element")
        guard !text.isEmpty else { return }
        try endTag()
        try appendEscaped(text, in: .content)
    }

    /// Ends the open element.
    public mutating func end() throws(DocumentError) {
        guard let start = nameStarts.popLast() else { return }
        if isInTag {
            output.append("/>")
            isInTag = false
        } else {
            output.append("</")
            names.withUnsafeBytes { names in
                output.append(UnsafeRawBufferPointer(rebasing: names[start...]))
            }
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
        return output.take()
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
            output.append(bytes)
        }
    }

    private mutating func appendEscaped(
        _ text: UnsafeRawBufferPointer, in context: XMLEscaping
    ) throws(DocumentError) {
        if let unfit = output.append(escaping: text, in: context) {
            throw DocumentError(.xml, .unrepresentable(unfit))
        }
        try checkSize()
    }

    private func checkSize() throws(DocumentError) {
        guard output.count <= maximum else {
            throw DocumentError(.xml, .outputTooLarge(maximum: maximum))
        }
    }
}
