/// What the replies of a server may amount to. It is an error, and the end of the connection, if
/// one exceeds a limit: nothing is allocated for what was only announced.
package struct RESPLimits: Sendable, Hashable {
    /// Bytes of a line: a simple string, an error, a number or a length.
    package var lineBytes = 4096
    /// Bytes of a bulk string.
    package var bulkBytes = 64 << 20
    /// Aggregates (arrays, maps, sets, pushes, attributes) within each other.
    package var depth = 8
    /// Values of one reply at all its levels, an entry of a map being two.
    package var elements = 65_536
    /// Bytes of one reply that is kept as a value (``RESPReader``); what is read in pieces does not
    /// count.
    package var replyBytes = 8 << 20

    /// The default limits.
    package init() {}
}
