/// A line of a part's header.
public struct MultipartField: Sendable, Equatable {
    /// The name as written.
    public var name: String
    /// The value without surrounding white space.
    public var value: String

    /// Creates a line.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// The header of a part of `multipart/form-data` (RFC 7578 §4).
public struct MultipartPart: Sendable, Equatable {
    /// The name of the form's field.
    public var name: String
    /// Not `nil` if the part is a file; empty if no file was chosen in a browser.
    public var fileName: String?
    /// As written; `nil` means `text/plain`.
    public var contentType: String?
    /// All lines of the header, including those above.
    public var fields: [MultipartField]
    /// The offset of the content in the body in bytes, counted from 0.
    public var offset: Int

    /// Creates a header; see the properties.
    public init(
        name: String, fileName: String? = nil, contentType: String? = nil,
        fields: [MultipartField] = [], offset: Int = 0
    ) {
        self.name = name
        self.fileName = fileName
        self.contentType = contentType
        self.fields = fields
        self.offset = offset
    }
}

/// Limits on reading a body: each is an upper bound, beyond which the body is refused.
public struct MultipartLimits: Sendable, Equatable {
    /// The size of the body in bytes.
    public var bytes: Int
    /// The number of parts.
    public var parts: Int
    /// The size of one part's header in bytes, including its empty line.
    public var headerBytes: Int
    /// The size of one part's content in bytes.
    public var partBytes: Int

    /// Creates the standard limits, except for those that are given.
    public init(
        bytes: Int = 8 << 20, parts: Int = 1024, headerBytes: Int = 8 << 10,
        partBytes: Int = 8 << 20
    ) {
        self.bytes = bytes
        self.parts = parts
        self.headerBytes = headerBytes
        self.partBytes = partBytes
    }

    /// 8 MiB, 1024 parts, headers of 8 KiB, parts of 8 MiB.
    public static let standard = MultipartLimits()
}

/// Receives what a ``MultipartReader`` reads, in order.
public protocol MultipartSink {
    /// A part begins; its content follows.
    mutating func beginPart(_ part: MultipartPart) throws(DocumentError)
    /// The next bytes of the content, at least one; valid during the call.
    mutating func content(_ bytes: UnsafeRawBufferPointer) throws(DocumentError)
    /// The part that began last is complete.
    mutating func endPart() throws(DocumentError)
}
