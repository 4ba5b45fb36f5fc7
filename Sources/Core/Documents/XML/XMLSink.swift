import CExpat

/// Takes the events of an XML document in their order. Names are as they are written, prefixes
/// included: namespaces are not looked up. Text is UTF-8 and valid during the call.
public protocol XMLSink {
    /// An element begins.
    mutating func start(_ tag: XMLTag) throws(DocumentError)
    /// Character data up to the next tag, CDATA and references to characters included, in one.
    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// The element of this name ends, the one that began last.
    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError)
    /// Asked only of a parser that reports comments.
    mutating func comment(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// A processing instruction; asked only of a parser that reports comments.
    mutating func instruction(
        _ target: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
    ) throws(DocumentError)
}

extension XMLSink {
    public mutating func comment(_ text: UnsafeRawBufferPointer) throws(DocumentError) {}
    public mutating func instruction(
        _ target: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
    ) throws(DocumentError) {}
}

/// The beginning of an element, valid during the event.
public struct XMLTag {
    /// As it is written, with its prefix.
    public let name: UnsafeRawBufferPointer
    /// Attributes of the tag.
    public let attributeCount: Int
    private let attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    private let expat: OpaquePointer

    init(
        _ name: UnsafeRawBufferPointer,
        _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?, _ expat: OpaquePointer
    ) {
        self.name = name
        self.attributes = attributes
        self.expat = expat
        attributeCount =
            attributes?.pointee == nil ? 0 : Int(XML_GetSpecifiedAttributeCount(expat)) / 2
    }

    /// The attribute with an index, in the order in which they are written, its value with
    /// references resolved.
    public func attribute(
        _ index: Int
    ) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        precondition((0..<attributeCount).contains(index))
        return (.init(cString: attributes?[2 * index]), .init(cString: attributes?[2 * index + 1]))
    }

    /// Where it begins. Counts lines from the tag before, so that it is best not asked of each.
    public var place: DocumentPlace { DocumentPlace(expat) }
}

extension DocumentPlace {
    /// Where a parser is: at the beginning of the event that it reports, or of what is wrong.
    init(_ expat: OpaquePointer) {
        self.init(
            offset: Int(XML_GetCurrentByteIndex(expat)),
            line: Int(XML_GetCurrentLineNumber(expat)),
            column: Int(XML_GetCurrentColumnNumber(expat)) + 1)
    }
}

extension UnsafeRawBufferPointer {
    init(cString: UnsafePointer<CChar>?) {
        self.init(start: cString, count: cString.map { Int(strlen($0)) } ?? 0)
    }
}
