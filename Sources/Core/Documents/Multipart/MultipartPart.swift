/// A line of a part's header.
public struct MultipartField: Sendable, Equatable {
    /// As it is written.
    public var name: String
    /// Without the white space around it.
    public var value: String

    /// A line of these two.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// What the header of a part of `multipart/form-data` says (RFC 7578, section 4).
public struct MultipartPart: Sendable, Equatable {
    /// The name of the form's field.
    public var name: String
    /// Not nil where the part is a file; empty where a browser was given none.
    public var fileName: String?
    /// As it stands there; nil means `text/plain`.
    public var contentType: String?
    /// All lines of the header, those that say the above among them.
    public var fields: [MultipartField]
    /// The byte of the body at which the content begins, counted from 0.
    public var offset: Int

    /// A header that says this; see the properties.
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

/// How much of a body is read: each is an upper bound, beyond which it is refused.
public struct MultipartLimits: Sendable, Equatable {
    /// Bytes of the body.
    public var bytes: Int
    /// Parts of the body.
    public var parts: Int
    /// Bytes of one part's header, its empty line included.
    public var headerBytes: Int
    /// Bytes of one part's content.
    public var partBytes: Int

    /// The standard limits, but for those that are given.
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

/// Takes what a ``MultipartReader`` reads, in its order.
public protocol MultipartSink {
    /// A part begins; its content follows.
    mutating func beginPart(_ part: MultipartPart) throws(DocumentError)
    /// The next bytes of the content, one or more, which are valid during the call.
    mutating func content(_ bytes: UnsafeRawBufferPointer) throws(DocumentError)
    /// The part that began last is complete.
    mutating func endPart() throws(DocumentError)
}
