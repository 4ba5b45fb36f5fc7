/// Decodes the chunked transfer coding with its trailers (RFC 9112 §7.1), strictly.
package struct ChunkedDecoder: Sendable {
    /// The limits that bodies are held to.
    package let limits: ChunkedLimits
    /// The trailer section's bytes with its empty line; empty when there are no trailers.
    package private(set) var trailerBytes: ContiguousArray<UInt8> = []
    /// The trailer fields, over ``trailerBytes``. Those of ``FieldIDSet/forbiddenInTrailers`` are to
    /// be dropped by whoever forwards them.
    package private(set) var trailers = FieldSection()
    /// Whether the end was reached.
    package var isComplete: Bool { false }

    /// A decoder before the first chunk.
    package init(limits: ChunkedLimits = ChunkedLimits()) { self.limits = limits }

    /// Reads on. Bytes that were consumed must not be given again.
    package mutating func decode(_ bytes: Span<UInt8>) throws(WireError) -> BodyStep {
        .needMore(consumed: 0)
    }
}
