import Documents

/// How much work may be done on content.
package enum WorkExtent: Sendable, Equatable {
    /// As much as the rules allow: on a thread that nobody waits for.
    case full
    /// So little that an event loop's thread can do it. A document of a few hundred bytes may stand
    /// for millions of values, where a binary property list names an object many times; what
    /// exceeds this is refused as too large, and says nothing about what the rules allow.
    case brief

    /// Values that are read briefly: as many as a document has bytes that is short by them.
    private static let briefValues = 16 << 10
    /// Bytes that are written briefly.
    private static let briefOutput = 256 << 10

    /// The limits of a document of so many bytes that may be read, and written.
    func limits(bytes: Int, _ interlude: Interlude? = nil) -> DocumentLimits {
        var limits =
            switch self {
            case .full: DocumentLimits(bytes: bytes, output: bytes)
            case .brief:
                DocumentLimits(
                    bytes: bytes, values: Self.briefValues, output: min(bytes, Self.briefOutput))
            }
        limits.interlude = interlude
        return limits
    }
}
