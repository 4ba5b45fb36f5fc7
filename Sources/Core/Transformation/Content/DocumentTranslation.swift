import Documents
import PinfoldConfiguration

/// What makes a document of one format one of another.
struct DocumentTranslation: Sendable {
    let from: DocumentFormat
    let to: DocumentFormat
    var removesNulls = false
    /// The form of a property list that is written.
    var propertyListForm = PropertyListForm.xml
    /// How the names of forms, those that are read and those that are written, say elements.
    var arrays = FormArrayStyle.brackets

    init(from: DocumentFormat, to: DocumentFormat) {
        self.from = from
        self.to = to
    }

    /// Nil where nothing is to be done: of translations of a format into itself only that of
    /// property lists, which writes the other form, and those that take null out change anything.
    init?(_ rules: ResponseBodyRules) {
        self.init(from: rules.from.document, to: rules.to.document)
        removesNulls = rules.removesKeysWithNullValues
        propertyListForm = rules.writesBinaryPropertyLists ? .binary : .xml
        let changes =
            switch from {
            case .json, .xml: from != to || removesNulls
            case .plist: true
            case .form, .multipart: from != to
            }
        guard changes else { return nil }
    }

    /// What was made.
    struct Product {
        var bytes: [UInt8]
        /// Values of null that were left out.
        var removedNulls = 0
    }

    /// What stands in Content-Type for what is written.
    var contentType: String {
        let type = to.mediaTypes[0]
        return to == .xml ? "\(type); charset=utf-8" : type
    }

    /// As in `json-to-plist`.
    var name: String { "\(from.rawValue)-to-\(to.rawValue)" }

    /// Whether what is written has another type than what is read. Within one format it has so
    /// where the type says an encoding that is not written.
    func changesType(of type: ContentType?) -> Bool {
        guard from == to, let charset = type?.charset else { return from != to }
        return ![.utf8, .ascii].contains(Charset(charset))
    }

    /// Whether content needs no translation, but for null in it.
    func keeps(_ content: [UInt8], ofType type: ContentType?) -> Bool {
        guard from == to, !changesType(of: type) else { return false }
        guard from == .plist else { return true }
        let isBinary = content.starts(with: "bplist".utf8)
        return isBinary == (propertyListForm == .binary)
    }

    func translate(
        _ content: SourceContent, limits: DocumentLimits
    ) throws(DocumentError) -> Product {
        switch to {
        case .json:
            try write(
                content, limits,
                JSONWriter(limits: limits, capacity: content.bytes.count + 512))
        case .xml: try write(content, limits, XMLValueWriter(limits: limits))
        case .form, .multipart:
            try write(content, limits, FormWriter(limits: limits, arrays: arrays))
        case .plist where propertyListForm == .binary:
            try write(
                content, limits,
                BinaryPropertyListWriter(limits: limits, capacity: content.bytes.count + 512))
        case .plist:
            // More than JSON grows by the tags; room that is not used costs nothing.
            try write(
                content, limits,
                XMLPropertyListWriter(limits: limits, capacity: content.bytes.count * 4 + 512))
        }
    }

    private func write(
        _ content: SourceContent, _ limits: DocumentLimits, _ writer: some DocumentWriter
    ) throws(DocumentError) -> Product {
        guard removesNulls else {
            var writer = writer
            try content.read(limits: limits, arrays: arrays, into: &writer)
            return Product(bytes: try writer.finish())
        }
        var removal = NullRemoval(writer)
        try content.read(limits: limits, arrays: arrays, into: &removal)
        let bytes = try removal.withSink { sink throws(DocumentError) in try sink.finish() }
        return Product(bytes: bytes, removedNulls: removal.removed)
    }
}

/// A sink that makes bytes of a document.
protocol DocumentWriter: DocumentSink {
    mutating func finish() throws(DocumentError) -> [UInt8]
}

extension JSONWriter: DocumentWriter {}
extension XMLValueWriter: DocumentWriter {}
extension FormWriter: DocumentWriter {}
extension XMLPropertyListWriter: DocumentWriter {}
extension BinaryPropertyListWriter: DocumentWriter {}
