import CExpat

/// Receives the events of an XML document in order. Names are as written, including prefixes:
/// namespaces are not resolved. Text is UTF-8 and valid during the call.
public protocol XMLSink {
    /// An element begins.
    mutating func start(_ tag: XMLTag) throws(DocumentError)
    /// Character data up to the next tag, including CDATA and references to characters, as one
    /// text.
    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// The element with this name ends, which is the one that began last.
    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError)
    /// Called only by a parser that reports comments.
    mutating func comment(_ text: UnsafeRawBufferPointer) throws(DocumentError)
    /// A processing instruction; called only by a parser that reports comments.
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
    /// The name as written, with its prefix.
    public let name: UnsafeRawBufferPointer
    /// The number of attributes in the tag.
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

    /// The attribute at an index, in the order written, with references in its value resolved.
    public func attribute(
        _ index: Int
    ) -> (name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        precondition((0..<attributeCount).contains(index))
        return (.init(cString: attributes?[2 * index]), .init(cString: attributes?[2 * index + 1]))
    }

    /// Where it begins. Counts lines from the previous tag, so it is best not used for each one.
    public var location: DocumentLocation { DocumentLocation(expat) }
}

extension DocumentLocation {
    /// The position of a parser: the beginning of the event that it reports, or of an error.
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
