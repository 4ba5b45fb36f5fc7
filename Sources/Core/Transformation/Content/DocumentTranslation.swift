import Documents
import PinfoldConfiguration

/// Translates documents from one format to another.
struct DocumentTranslation: Sendable {
    let from: DocumentFormat
    let to: DocumentFormat
    var removesNulls = false
    /// The form in which property lists are written.
    var propertyListForm = PropertyListForm.xml
    /// How the names of forms, both read and written, denote array elements.
    var arrays = FormArrayStyle.brackets

    init(from: DocumentFormat, to: DocumentFormat) {
        self.from = from
        self.to = to
    }

    /// Returns `nil` if there is nothing to do: a translation of a format into itself changes
    /// something only for property lists, which are written in the other form, and if null is
    /// removed.
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

    /// The output of a translation.
    struct Product {
        var bytes: [UInt8]
        /// The number of null values that were removed.
        var removedNulls = 0
    }

    /// The Content-Type of the output.
    var contentType: String {
        let type = to.mediaTypes[0]
        return to == .xml ? "\(type); charset=utf-8" : type
    }

    /// As in `json-to-plist`.
    var name: String { "\(from.rawValue)-to-\(to.rawValue)" }

    /// Whether the output's type differs from the input's. Within one format it does if the type
    /// names an encoding that is not written.
    func changesType(of type: ContentType?) -> Bool {
        guard from == to, let charset = type?.charset else { return from != to }
        return ![.utf8, .ascii].contains(Charset(charset))
    }

    /// Whether content needs no translation, apart from removing null.
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
            // The tags make it larger than JSON; unused capacity costs nothing.
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

/// A sink that writes a document as bytes.
protocol DocumentWriter: DocumentSink {
    mutating func finish() throws(DocumentError) -> [UInt8]
}

extension JSONWriter: DocumentWriter {}
extension XMLValueWriter: DocumentWriter {}
extension FormWriter: DocumentWriter {}
extension XMLPropertyListWriter: DocumentWriter {}
extension BinaryPropertyListWriter: DocumentWriter {}
