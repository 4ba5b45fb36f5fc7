import Documents

/// How much work may be done on content.
package enum WorkExtent: Sendable, Equatable {
    /// As much as the rules allow: on a thread that nobody waits for.
    case full
    /// Little enough for an event loop's thread. A document of a few hundred bytes may represent
    /// millions of values, if a binary property list refers to an object many times; what exceeds
    /// this is refused as too large, which does not mean that the rules would refuse it.
    case brief

    /// The maximum number of values: as many as a short document has bytes.
    private static let briefValues = 16 << 10
    /// The maximum number of bytes written.
    private static let briefOutput = 256 << 10

    /// The limits for reading, and writing, a document of this many bytes.
    func limits(bytes: Int, _ yieldPoint: YieldPoint? = nil) -> DocumentLimits {
        var limits =
            switch self {
            case .full: DocumentLimits(bytes: bytes, output: bytes)
            case .brief:
                DocumentLimits(
                    bytes: bytes, values: Self.briefValues, output: min(bytes, Self.briefOutput))
            }
        limits.yieldPoint = yieldPoint
        return limits
    }
}
