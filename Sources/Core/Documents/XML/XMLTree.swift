/// An attribute of an element.
public struct XMLAttribute: Sendable, Equatable {
    /// As it is written, with its prefix.
    public var name: String
    /// With references expanded.
    public var value: String

    /// An attribute of this name and value.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// A document of XML 1.0 as a tree. (`XMLDocument` is Foundation's.)
public struct XMLTree: Sendable, Equatable {
    /// The one element that all others are in.
    public var root: XMLTree.Element

    /// Elements within one another at most, whatever the limits say, for a tree is freed and
    /// compared level by level.
    public static let maximumDepth = 128

    /// A document of this element.
    public init(root: XMLTree.Element) { self.root = root }

    /// Reads a document; see ``XMLPushParser`` for what is refused.
    public init(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        encoding: String? = nil
    ) throws(DocumentError) {
        var limits = limits
        limits.depth = min(limits.depth, Self.maximumDepth)
        let parser = XMLPushParser(XMLTreeBuilder(), limits: limits, encoding: encoding)
        try parser.read(bytes)
        guard let root = parser.sink.root else {
            throw DocumentError(.xml, .malformed("there is no element here"))
        }
        self.root = root
    }

    /// Reads a document.
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
    /// What is within an element.
    public enum Node: Sendable, Equatable {
        /// An element, with all that is in it.
        case element(Element)
        /// Character data, with references expanded.
        case text(String)
    }

    /// An element of an XML document, with its attributes and its content in their order.
    public struct Element: Sendable, Equatable {
        /// As it is written, with its prefix.
        public var name: String
        /// In their order.
        public var attributes: [XMLAttribute]
        /// Text and elements as they come. What was read has no two texts side by side; CDATA is
        /// text, comments and processing instructions are left out.
        public var content: [Node]
        /// The line on which it begins, from 1; nil in an element that was not read. Equal elements
        /// may have different lines.
        public var line: Int?

        /// An element that was not read, and so is on no line.
        public init(_ name: String, attributes: [XMLAttribute] = [], content: [Node] = []) {
            self.name = name
            self.attributes = attributes
            self.content = content
        }

        /// The elements directly inside.
        public var children: [Element] {
            content.compactMap { if case .element(let element) = $0 { element } else { nil } }
        }

        /// The text directly inside, that of all places together.
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

/// Makes a tree of a parser's events.
struct XMLTreeBuilder: XMLSink {
    private var open: [XMLTree.Element] = []
    private(set) var root: XMLTree.Element?

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        var element = XMLTree.Element(String(decoding: tag.name, as: UTF8.self))
        element.line = tag.place.line
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
