/// A piece of a reply, as ``RESPParser`` finds it.
package enum RESPToken: Sendable, Hashable {
    /// `_`, or one of RESP2: `$-1`, `*-1`.
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    /// A number of any size; its digits are ``RESPParser/line``.
    case bigNumber
    /// A simple string; its text is ``RESPParser/line``.
    case simple
    /// A simple error; its text is ``RESPParser/line``.
    case error
    /// A bulk string begins.
    /// - Parameter count: its bytes; `nil` if they are not known before its end.
    case bulkBegins(RESPBulk, count: Int?)
    /// Bytes of the bulk string: this range of the bytes that were passed. They are not copied.
    case bulkBytes(Range<Int>)
    case bulkEnds
    /// An aggregate begins.
    /// - Parameter count: its values, for each entry of a map two; `nil` if that is not known
    ///   before its end.
    case aggregateBegins(RESPAggregate, count: Int?)
    case aggregateEnds
}

/// The kinds of bulk strings.
package enum RESPBulk: Sendable, Hashable {
    case string
    case error
    /// The first four bytes are a format (`txt`, `mkd`) and a colon.
    case verbatim
}

/// The kinds of aggregates.
package enum RESPAggregate: Sendable, Hashable {
    case array
    case set
    case map
    /// A message that answers no command.
    case push
    /// A map of what is said about the value that follows.
    case attribute
}
