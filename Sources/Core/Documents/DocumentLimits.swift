/// How much of a document is read and made: each is an upper bound, beyond which the document is
/// refused with a ``DocumentError``.
public struct DocumentLimits: Sendable, Equatable {
    /// Bytes of the document.
    public var bytes: Int
    /// Arrays, dictionaries or elements within one another.
    public var depth: Int
    /// Values, keys not counted; a value that a binary property list refers to more than once
    /// counts each time.
    public var values: Int
    /// Characters of a number.
    public var digits: Int
    /// Bytes of what is written.
    public var output: Int
    /// What is done now and then; nil: nothing.
    package var interlude: Interlude?

    /// The standard limits, but for those that are given.
    public init(
        bytes: Int = 8 << 20, depth: Int = 128, values: Int = 1 << 20, digits: Int = 1024,
        output: Int = 32 << 20
    ) {
        self.bytes = bytes
        self.depth = depth
        self.values = values
        self.digits = digits
        self.output = output
    }

    /// 8 MiB read and 32 MiB written, 128 levels, 2^20 values, numbers of 1024 characters.
    public static let standard = DocumentLimits()

    /// These limits for a document that becomes a tree.
    var ofTree: DocumentLimits {
        var limits = self
        limits.depth = min(depth, DocumentBuilder.maximumDepth)
        return limits
    }
}
