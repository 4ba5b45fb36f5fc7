import HTTPCore

/// How the files in a body that is read as a document are handled.
public enum MultipartFiles: Sendable, CaseIterable {
    /// The body is refused.
    case refused
    /// They are omitted.
    case omitted
    /// Their content becomes data; their names and types are omitted.
    case data
}

/// `multipart/form-data` bodies that are entirely in memory.
public enum MultipartDocument {
    /// The boundary in a Content-Type.
    ///
    /// - Throws: `malformed` if there is none, or the type is not `multipart/form-data`.
    public static func boundary(of contentType: String) throws(DocumentError) -> String {
        do throws(MultipartHeader.ParseError) {
            let (type, parameters) = try MultipartHeader.parameters(of: contentType)
            guard type.lowercasedASCII == "multipart/form-data",
                let boundary = parameters["boundary"]
            else { throw MultipartHeader.ParseError("no multipart/form-data boundary") }
            return boundary
        } catch {
            throw DocumentError(.multipart, error.reason)
        }
    }

    /// All parts of a body, with their contents as slices of it.
    ///
    /// - Throws: as ``MultipartReader``.
    public static func parts(
        of body: [UInt8], boundary: String, limits: MultipartLimits = .standard
    ) throws(DocumentError) -> [(part: MultipartPart, content: ArraySlice<UInt8>)] {
        var collector = Collector()
        try read(body, boundary: boundary, limits: limits, into: &collector)
        return collector.parts.map { ($0.part, body[$0.part.offset..<$0.part.offset + $0.count]) }
    }

    /// Reads a body as a dictionary: fields are strings, and their names are interpreted as by
    /// ``FormReader``, so that repeated ones become arrays. A part with an empty file name and no
    /// content, which a browser sends if no file was chosen, is omitted.
    ///
    /// - Parameters:
    ///   - files: how parts with a file name are handled.
    ///   - limits: the limits for the body.
    ///   - documentLimits: of these `depth` and `values` apply.
    ///   - arrays: what numbers in brackets mean.
    /// - Throws: as ``MultipartReader`` and ``FormReader``; `unrepresentable` for a file that is
    ///   refused, and for a reference to a file that is not sent, with its part's name as the path;
    ///   `encoding` for a field that is not UTF-8, or that declares another `charset`.
    public static func asDocument(
        _ body: [UInt8], boundary: String, files: MultipartFiles = .refused,
        limits: MultipartLimits = .standard, documentLimits: DocumentLimits = .standard,
        arrays: FormArrayStyle = .brackets
    ) throws(DocumentError) -> DocumentValue {
        var builder = DocumentBuilder()
        var fields = FieldCollector(files: files, limits: documentLimits.ofTree, arrays: arrays)
        try read(body, boundary: boundary, limits: limits, into: &fields)
        try fields.tree.replay(into: &builder)
        return builder.value ?? .null
    }

    private static func read(
        _ body: [UInt8], boundary: String, limits: MultipartLimits,
        into sink: inout some MultipartSink
    ) throws(DocumentError) {
        var reader = try MultipartReader(boundary: boundary, limits: limits)
        try body.withBytes { bytes throws(DocumentError) in
            try reader.feed(bytes, into: &sink)
        }
        try reader.finish()
    }

    private struct Collector: MultipartSink {
        var parts: [(part: MultipartPart, count: Int)] = []

        mutating func beginPart(_ part: MultipartPart) { parts.append((part, 0)) }
        mutating func content(_ bytes: UnsafeRawBufferPointer) {
            parts[parts.count - 1].count += bytes.count
        }
        mutating func endPart() {}
    }
}

/// Builds a form from the parts.
private struct FieldCollector: MultipartSink {
    let files: MultipartFiles
    var tree: FormTree
    private var part = MultipartPart(name: "")
    private var content: [UInt8] = []
    private var isEmpty = true

    init(files: MultipartFiles, limits: DocumentLimits, arrays: FormArrayStyle) {
        self.files = files
        tree = FormTree(format: .multipart, limits: limits, arrays: arrays)
    }

    mutating func beginPart(_ part: MultipartPart) throws(DocumentError) {
        self.part = part
        content.removeAll(keepingCapacity: true)
        isEmpty = true
        try checkFile()
        if part.fileName == nil { try checkEncoding() }
    }

    /// Refuses parts that are files according to their type.
    private func checkFile() throws(DocumentError) {
        // Only the beginning is compared, so that a malformed media type is not let through.
        let type = part.contentType?.lowercasedASCII ?? ""
        if type.hasPrefix("message/external-body") { throw error(Self.fileByReference) }
        if type.hasPrefix("multipart/") { throw error(.unrepresentable("several files in a part")) }
    }

    private static let fileByReference =
        DocumentError.Reason.unrepresentable("a reference to a file that is not sent")

    mutating func content(_ bytes: UnsafeRawBufferPointer) throws(DocumentError) {
        isEmpty = false
        if part.fileName != nil, files == .refused { throw error(.unrepresentable("a file")) }
        if part.fileName == nil || files == .data { content.append(contentsOf: bytes) }
    }

    mutating func endPart() throws(DocumentError) {
        if let fileName = part.fileName {
            if isEmpty, fileName.isEmpty { return }
            if isEmpty, files == .refused { throw error(Self.fileByReference) }
            if files == .data { try add(.data(content)) }
            return
        }
        guard String(validating: content, as: UTF8.self) != nil else { throw error(.encoding) }
        try add(.text(content))
    }

    private mutating func add(_ leaf: FormTree.Leaf) throws(DocumentError) {
        do throws(DocumentError) {
            try tree.add(name: Array(part.name.utf8), leaf)
        } catch {
            throw self.error(error.reason)
        }
    }

    private func checkEncoding() throws(DocumentError) {
        guard let type = part.contentType else { return }
        do throws(MultipartHeader.ParseError) {
            let charset = try MultipartHeader.parameters(of: type).parameters["charset"] ?? "utf-8"
            guard ["utf-8", "utf8", "us-ascii"].contains(charset.lowercasedASCII) else {
                throw MultipartHeader.ParseError(.encoding)
            }
        } catch {
            throw self.error(error.reason)
        }
    }

    private func error(_ reason: DocumentError.Reason) -> DocumentError {
        DocumentError(
            .multipart, reason, at: DocumentLocation(offset: part.offset),
            path: String(part.name.prefix(40)))
    }
}
