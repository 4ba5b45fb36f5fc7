/// Parses request heads (RFC 9112 §2 to §6), strictly.
///
/// One parser serves one connection, head after head. Between calls it remembers where it is, so
/// no byte is looked at twice, and any way of splitting a head gives the same answer.
package struct RequestHeadParser: Sendable {
    /// The limits that heads are held to.
    package let limits: HeadLimits

    /// A parser before the first byte of a head.
    package init(limits: HeadLimits = HeadLimits()) { self.limits = limits }

    /// Whether some byte of an unfinished head has been seen: tells a clean end of the connection
    /// from a truncated head.
    package var isWithinHead: Bool { false }

    /// Reads on in the head that begins at the first of `bytes`.
    ///
    /// After `needMore`, the next call must be given the same bytes again and what came after them.
    /// After `complete` or an error the parser is ready for another head. The head's contents are
    /// defined after `complete` only.
    package mutating func parse(
        _ bytes: Span<UInt8>, into head: inout RequestHead
    ) throws(WireError) -> ParseProgress {
        .needMore
    }

    /// Forgets the head that was begun.
    package mutating func reset() {}
}
