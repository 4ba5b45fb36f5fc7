/// An attribute of an element.
public struct XMLAttribute: Sendable, Equatable {
    /// The name as written, with its prefix.
    public var name: String
    /// The value, with references resolved.
    public var value: String

    /// Creates an attribute.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// An XML 1.0 document as a tree. (The name `XMLDocument` is Foundation's.)
public struct XMLTree: Sendable, Equatable {
    /// The root element.
    public var root: XMLTree.Element

    /// The maximum nesting depth of elements, whatever the limits are, because a tree is freed and
    /// compared recursively.
    public static let maximumDepth = 128

    /// Creates a document with this root element.
    public init(root: XMLTree.Element) { self.root = root }

    /// Parses a document; see ``XMLPushParser`` for what is refused.
    public init(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        encoding: String? = nil
    ) throws(DocumentError) {
        var limits = limits
        limits.depth = min(limits.depth, Self.maximumDepth)
        let parser = XMLPushParser(XMLTreeBuilder(), limits: limits, encoding: encoding)
        try parser.read(bytes)
        guard let root = parser.sink.root else {
            throw DocumentError(.xml, .malformed("there is no element"))
        }
        self.root = root
    }

    /// Parses a document.
    public init(
        _ bytes: [UInt8], limits: DocumentLimits = .standard, encoding: String? = nil
    ) throws(DocumentError) {
        self = try bytes.withBytes { bytes throws(DocumentError) in
            try XMLTree(bytes, limits: limits, encoding: encoding)
        }
    }

    /// The document in UTF-8.
    public func write(limits: DocumentLimits = .standard) throws(DocumentError) -> [UInt8] {
        var writer = XMLWriter(limits: limits)
        var open: [ArraySlice<XMLTree.Node>] = []
        try Self.begin(root, &writer, &open)
        while let last = open.indices.last {
            switch open[last].popFirst() {
            case .element(let element): try Self.begin(element, &writer, &open)
            case .text(let text): try writer.text(text)
            case nil:
                try writer.end()
                open.removeLast()
            }
        }
        return try writer.finish()
    }

    private static func begin(
        _ element: XMLTree.Element, _ writer: inout XMLWriter,
        _ open: inout [ArraySlice<XMLTree.Node>]
    ) throws(DocumentError) {
        try writer.start(element.name)
        for attribute in element.attributes {
            try writer.attribute(attribute.name, attribute.value)
        }
        open.append(element.content[...])
    }
}

extension XMLTree {
    /// A child of an element.
    public enum Node: Sendable, Equatable {
        /// An element with its content.
        case element(Element)
        /// Character data, with references resolved.
        case text(String)
    }

    /// An element of an XML document, with its attributes and its content in order.
    public struct Element: Sendable, Equatable {
        /// The name as written, with its prefix.
        public var name: String
        /// The attributes in order.
        public var attributes: [XMLAttribute]
        /// Text and elements in order. Parsed content has no two adjacent texts; CDATA is text,
        /// comments and processing instructions are omitted.
        public var content: [Node]
        /// The line on which it begins, from 1; `nil` for an element that was not parsed. Equal
        /// elements may have different lines.
        public var line: Int?

        /// Creates an element that was not parsed, and so has no line.
        public init(_ name: String, attributes: [XMLAttribute] = [], content: [Node] = []) {
            self.name = name
            self.attributes = attributes
            self.content = content
        }

        /// The child elements.
        public var children: [Element] {
            content.compactMap { if case .element(let element) = $0 { element } else { nil } }
        }

        /// All text that is directly inside, concatenated.
        public var text: String {
            content.reduce(into: "") { if case .text(let text) = $1 { $0 += text } }
        }

        /// The value of an attribute.
        public func attribute(_ name: String) -> String? {
            attributes.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
        }

        public static func == (left: Self, right: Self) -> Bool {
            left.name == right.name && left.attributes == right.attributes
                && left.content == right.content
        }
    }
}

/// Builds a tree from a parser's events.
struct XMLTreeBuilder: XMLSink {
    private var open: [XMLTree.Element] = []
    private(set) var root: XMLTree.Element?

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        var element = XMLTree.Element(String(decoding: tag.name, as: UTF8.self))
        element.line = tag.location.line
        element.attributes.reserveCapacity(tag.attributeCount)
        for index in 0..<tag.attributeCount {
            let attribute = tag.attribute(index)
            element.attributes.append(
                XMLAttribute(
                    String(decoding: attribute.name, as: UTF8.self),
                    String(decoding: attribute.value, as: UTF8.self)))
        }
        open.append(element)
    }

    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        open[open.count - 1].content.append(.text(String(decoding: text, as: UTF8.self)))
    }

    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) {
        guard let element = open.popLast() else { return }
        if open.isEmpty {
            root = element
        } else {
            open[open.count - 1].content.append(.element(element))
        }
    }
}
