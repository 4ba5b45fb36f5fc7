import HTTPCore

/// The two forms of property lists that are read and written.
public enum PropertyListForm: String, Sendable, CaseIterable {
    /// XML with Apple's document type.
    case xml
    /// `bplist00`.
    case binary
}

/// Reads a property list, in XML or binary (`bplist00`) form.
///
/// Its integers and reals are numbers: an integer has neither fraction nor exponent, a real always
/// has one of them. Dates and data keep their types. A UID, which keyed archives use, is a
/// dictionary whose only member is `CF$UID`, as `plutil` writes it. Old-style (ASCII) property
/// lists are refused.
public enum PropertyListReader {
    /// Reads a property list and passes its events to a sink.
    ///
    /// - Parameter encoding: The encoding of XML according to a message's head; `nil` if the
    ///   document specifies it.
    public static func read(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits = .standard,
        encoding: String? = nil, into sink: inout some DocumentSink
    ) throws(DocumentError) {
        guard bytes.count <= limits.bytes else {
            throw DocumentError(.plist, .tooLarge(maximum: limits.bytes))
        }
        switch try form(of: bytes) {
        case .xml: try readXML(bytes, limits, encoding, isPlain: true, &sink)
        case .binary:
            var reader = try BinaryPropertyListReader(bytes, limits: limits)
            try reader.read(into: &sink)
        }
    }

    /// Reads a property list as a value.
    public static func value(
        of bytes: [UInt8], limits: DocumentLimits = .standard
    ) throws(DocumentError) -> DocumentValue {
        var builder = DocumentBuilder()
        try bytes.withBytes { bytes throws(DocumentError) in
            try read(bytes, limits: limits.ofTree, into: &builder)
        }
        guard let value = builder.value else {
            throw DocumentError(.plist, .malformed("there is no value"))
        }
        return value
    }

    /// Reads an XML property list with expat alone, for comparison.
    package static func valueByExpat(
        of bytes: [UInt8], limits: DocumentLimits = .standard
    ) throws(DocumentError) -> DocumentValue {
        var builder = DocumentBuilder()
        try bytes.withBytes { bytes throws(DocumentError) in
            try readXML(bytes, limits.ofTree, nil, isPlain: false, &builder)
        }
        guard let value = builder.value else {
            throw DocumentError(.plist, .malformed("there is no value"))
        }
        return value
    }

    /// The form of a property list; throws if it has neither.
    public static func form(
        of bytes: UnsafeRawBufferPointer
    ) throws(DocumentError) -> PropertyListForm {
        if bytes.starts(with: "bplist".utf8) {
            guard bytes.starts(with: "bplist00".utf8) else {
                throw DocumentError(
                    .plist,
                    .malformed("the version of the binary property list is unknown"),
                    at: DocumentLocation(offset: 6))
            }
            return .binary
        }
        // Byte order marks, and the zeros of UTF-16.
        let marks: [UInt8] = [0xEF, 0xBB, 0xBF, 0xFE, 0xFF, 0]
        let first = bytes.first { !marks.contains($0) && !XMLCharacters.isSpace($0) }
        guard let first, first != UInt8(ascii: "<") else { return .xml }
        let location = DocumentLocation(offset: 0, line: 1, column: 1)
        guard "{(\"/".utf8.contains(first) else {
            throw DocumentError(
                .plist, .malformed("this is neither XML nor a binary property list"), at: location)
        }
        throw DocumentError(
            .plist,
            .malformed("old-style (ASCII) property lists are not supported"),
            at: location)
    }

    private static func readXML<Sink: DocumentSink>(
        _ bytes: UnsafeRawBufferPointer, _ limits: DocumentLimits, _ encoding: String?,
        isPlain: Bool, _ sink: inout Sink
    ) throws(DocumentError) {
        try withUnsafeMutablePointer(to: &sink) { sink throws(DocumentError) in
            var sink = RepeatableSink(sink)
            try withUnsafeMutablePointer(to: &sink) { sink throws(DocumentError) in
                if isPlain, encoding == nil || encoding == "utf-8" {
                    var reader = PlainPropertyListReader(bytes, limits: limits, into: sink)
                    if reader.read() { return }
                    sink.pointee.rewind()
                }
                try readWithExpat(bytes, limits, encoding, sink)
            }
        }
    }

    private static func readWithExpat(
        _ bytes: UnsafeRawBufferPointer, _ limits: DocumentLimits, _ encoding: String?,
        _ sink: UnsafeMutablePointer<some DocumentSink>
    ) throws(DocumentError) {
        // A value with a key has two elements; the key does not count as a value.
        var elements = limits
        elements.values = min(limits.values, Int.max / 2 - 8) * 2 + 8
        elements.depth = min(limits.depth, Int.max - 2) + 2
        let parser = XMLPushParser(
            PropertyListEvents(sink, limits: limits),
            ExpatOptions(
                limits: elements, encoding: encoding, reportsComments: false, format: .plist))
        try parser.read(bytes)
    }
}
