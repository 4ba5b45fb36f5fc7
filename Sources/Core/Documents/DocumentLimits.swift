/// Limits on reading and writing a document: each is an upper bound, beyond which the document is
/// refused with a ``DocumentError``.
public struct DocumentLimits: Sendable, Equatable {
    /// The size of the document in bytes.
    public var bytes: Int
    /// The nesting depth of arrays, dictionaries or elements.
    public var depth: Int
    /// The number of values, not counting keys; a value that a binary property list refers to
    /// repeatedly counts each time.
    public var values: Int
    /// The number of characters in a number.
    public var digits: Int
    /// The size of the output in bytes.
    public var output: Int
    /// Called from time to time; `nil` for nothing.
    package var yieldPoint: YieldPoint?

    /// Creates the standard limits, except for those that are given.
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

    /// 8 MiB of input and 32 MiB of output, 128 levels, 2^20 values, numbers of 1024 characters.
    public static let standard = DocumentLimits()

    /// These limits for a document that is read into a tree.
    var ofTree: DocumentLimits {
        var limits = self
        limits.depth = min(depth, DocumentBuilder.maximumDepth)
        return limits
    }
}
