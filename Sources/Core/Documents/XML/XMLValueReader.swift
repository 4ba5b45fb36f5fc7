/// Reads XML as a value, following the convention of Python's xmltodict:
/// - the document is a dictionary with one key, the root's name;
/// - an element that has attributes or contains elements is a dictionary: attributes under `@name`,
///   elements under their names, text under `#text`;
/// - any other element is its text as a string, or null if it has none;
/// - elements with the same name in one element are an array, in the position of the first;
/// - white space around an element's text is removed, and text that is nothing else is dropped.
///
/// Text on several sides of elements is concatenated; its position is lost.
public enum XMLValueReader {
    /// Reads a document, and passes the value that it represents to a sink, as events.
    ///
    /// - Parameters:
    ///   - bytes: The document.
    ///   - limits: The limits for the document.
    ///   - encoding: The encoding according to the transport; `nil` if the document specifies it.
    ///   - sink: Receives nothing if the document is refused.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        encoding: String? = nil, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        try value(bytes, limits, encoding).replay(into: &sink)
    }

    /// The value that a document represents.
    public static func value(
        of bytes: [UInt8], limits: DocumentLimits = .standard, encoding: String? = nil
    ) throws(DocumentError) -> DocumentValue {
        try bytes.withBytes { bytes throws(DocumentError) in try value(bytes, limits, encoding) }
    }

    private static func value(
        _ bytes: UnsafeRawBufferPointer, _ limits: DocumentLimits, _ encoding: String?
    ) throws(DocumentError) -> DocumentValue {
        var limits = limits
        limits.depth = min(limits.depth, XMLTree.maximumDepth)
        let parser = XMLPushParser(XMLValueBuilder(), limits: limits, encoding: encoding)
        try parser.read(bytes)
        return parser.sink.value
    }
}

/// Builds a value from a parser's events.
private struct XMLValueBuilder: XMLSink {
    /// The document, followed by the open elements.
    private var open = [OpenElement(name: "")]

    var value: DocumentValue { open[0].value }

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        var element = OpenElement(name: String(decoding: tag.name, as: UTF8.self))
        for index in 0..<tag.attributeCount {
            let (name, value) = tag.attribute(index)
            element.add(
                .string(String(decoding: value, as: UTF8.self)),
                as: "@" + String(decoding: name, as: UTF8.self))
        }
        open.append(element)
    }

    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        open[open.count - 1].text.append(contentsOf: text)
    }

    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) {
        guard var element = open.popLast() else { return }
        element.addText()
        open[open.count - 1].add(element.value, as: element.name)
    }
}

private struct OpenElement {
    let name: String
    var text: [UInt8] = []
    private var keys: [String] = []
    /// The values of each key, mostly one.
    private var values: [[DocumentValue]] = []
    /// The index of each key; computed if there are many.
    private var indexByKey: [[UInt8]: Int] = [:]
    private var lone: DocumentValue = .null
    private static let walked = 8

    init(name: String) { self.name = name }

    private func index(of key: String) -> Int? {
        if let last = keys.last, last.utf8.elementsEqual(key.utf8) { return keys.count - 1 }
        return keys.count > Self.walked
            ? indexByKey[Array(key.utf8)] : keys.firstIndex { $0.utf8.elementsEqual(key.utf8) }
    }

    mutating func add(_ value: DocumentValue, as key: String) {
        if let index = index(of: key) {
            values[index].append(value)
            return
        }
        keys.append(key)
        values.append([value])
        if keys.count == Self.walked + 1 {
            for (index, key) in keys.enumerated() { indexByKey[Array(key.utf8)] = index }
        } else if keys.count > Self.walked {
            indexByKey[Array(key.utf8)] = keys.count - 1
        }
    }

    mutating func addText() {
        guard let trimmed = Self.trimmed(text) else { return }
        if keys.isEmpty { lone = .string(trimmed) } else { add(.string(trimmed), as: "#text") }
    }

    var value: DocumentValue {
        guard !keys.isEmpty else { return lone }
        let members = zip(keys, values).map { key, values in
            DocumentDictionary.Member(
                key: key, value: values.count == 1 ? values[0] : .array(values))
        }
        return .dictionary(DocumentDictionary(members: members))
    }

    /// The text without surrounding (Unicode) white space, as in Python; `nil` if nothing else is
    /// left.
    private static func trimmed(_ text: [UInt8]) -> String? {
        guard !text.allSatisfy(XMLCharacters.isSpace) else { return nil }
        let inner = text.drop(while: XMLCharacters.isSpace)
        let end = inner.lastIndex { !XMLCharacters.isSpace($0) }.map { $0 + 1 } ?? inner.endIndex
        let string = String(decoding: inner[..<end], as: UTF8.self)
        guard (inner.first ?? 0) >= 0x80 || inner[end - 1] >= 0x80 else { return string }
        let scalars = string.unicodeScalars.drop { $0.properties.isWhitespace }
        guard let last = scalars.lastIndex(where: { !$0.properties.isWhitespace }) else {
            return nil
        }
        return String(scalars[...last])
    }
}
