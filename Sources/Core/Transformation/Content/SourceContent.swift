import Documents

/// Content to be parsed, without content coding.
struct SourceContent {
    let format: DocumentFormat
    /// In UTF-8; for XML in an encoding that its parser supports.
    let bytes: [UInt8]
    /// The encoding of XML according to the message's head; `nil` if the document specifies it.
    private(set) var encoding: String?
    /// The boundary of multipart content.
    private(set) var boundary = ""

    /// - Throws: `encoding` for an unsupported charset, `malformed` for multipart content without a
    ///   boundary.
    init(
        _ content: [UInt8], _ format: DocumentFormat, contentType: String?
    ) throws(DocumentError) {
        self.format = format
        let type = ContentType(contentType)
        if format == .multipart {
            boundary = try MultipartDocument.boundary(of: contentType ?? "")
            bytes = content
            return
        }
        guard let charset = Charset(type?.charset),
            !charset.isUTF16 || format == .xml || format == .plist
        else { throw DocumentError(format, .encoding) }
        switch format {
        case .xml, .plist:
            encoding = type?.charset(ofXML: content) == nil ? nil : charset.rawValue
            bytes = content
        case .json: bytes = charset == .latin1 ? Charset.utf8(latin1: content) : content
        case .form: bytes = charset == .latin1 ? Charset.utf8(latin1Form: content) : content
        case .multipart: bytes = content
        }
    }

    /// Whether content is empty: no bytes or, as in AFNetworking for JSON, a single space. A form
    /// without bytes is an empty dictionary; XML and multipart content cannot be empty.
    static func isEmptyContent(_ content: [UInt8], _ format: DocumentFormat) -> Bool {
        switch format {
        case .json: content.isEmpty || content == [0x20]
        case .plist: content.isEmpty
        case .xml, .form, .multipart: false
        }
    }

    /// Passes the document's events to a sink.
    ///
    /// - Parameter arrays: see ``FormReader``, for forms and multipart content.
    func read(
        limits: DocumentLimits, arrays: FormArrayStyle = .brackets,
        into sink: inout some DocumentSink
    ) throws(DocumentError) {
        if format == .multipart {
            let bounds = MultipartLimits(bytes: limits.bytes, partBytes: limits.bytes)
            let value = try MultipartDocument.asDocument(
                bytes, boundary: boundary, limits: bounds, documentLimits: limits,
                arrays: arrays)
            return try value.replay(into: &sink)
        }
        // The sink cannot be `inout` within two nested closures.
        try withUnsafeMutablePointer(to: &sink) { sink throws(DocumentError) in
            try bytes.withBytes { bytes throws(DocumentError) in
                switch format {
                case .json: try JSONDocument.read(bytes, limits: limits, into: &sink.pointee)
                case .form:
                    try FormReader.read(bytes, limits: limits, arrays: arrays, into: &sink.pointee)
                case .plist:
                    try PropertyListReader.read(
                        bytes, limits: limits, encoding: encoding, into: &sink.pointee)
                case .xml, .multipart:
                    try XMLValueReader.read(
                        bytes, limits: limits, encoding: encoding, into: &sink.pointee)
                }
            }
        }
    }

    /// Parses the document and discards its events.
    func check(limits: DocumentLimits) throws(DocumentError) {
        switch format {
        case .json: try JSONValidator.validate(bytes, limits: limits)
        case .xml:
            let parser = XMLPushParser(DiscardedXML(), limits: limits, encoding: encoding)
            try bytes.withBytes { bytes throws(DocumentError) in try parser.push(bytes) }
            try parser.finish()
        case .plist, .form, .multipart:
            var discarded = DiscardedDocument()
            try read(limits: limits, into: &discarded)
        }
    }
}

/// Discards the events of XML.
private struct DiscardedXML: XMLSink {
    mutating func start(_ tag: XMLTag) {}
    mutating func text(_ text: UnsafeRawBufferPointer) {}
    mutating func end(_ name: UnsafeRawBufferPointer) {}
}

/// Discards the events of a document.
private struct DiscardedDocument: DocumentSink {
    mutating func null() {}
    mutating func boolean(_ value: Bool) {}
    mutating func number(_ text: UnsafeRawBufferPointer) {}
    mutating func string(_ text: UnsafeRawBufferPointer) {}
    mutating func data(_ bytes: UnsafeRawBufferPointer) {}
    mutating func date(_ seconds: Double) {}
    mutating func beginArray() {}
    mutating func endArray() {}
    mutating func beginDictionary() {}
    mutating func key(_ text: UnsafeRawBufferPointer) {}
    mutating func endDictionary() {}
}
