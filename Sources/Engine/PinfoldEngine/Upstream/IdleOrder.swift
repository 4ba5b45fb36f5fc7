import EventLoop

/// What `IdleOrder` needs of a connection, and stores in it.
package protocol IdleOrdered {
    var isIdle: Bool { get }
    var isClosed: Bool { get }
    /// When it became idle: in the loop's milliseconds, which several connections may share, or in
    /// a count that increases each time.
    var idleSince: Int64 { get nonmutating set }
    /// The time by which it is queued; `nil` if it is not.
    var queuedAt: Int64? { get nonmutating set }
}

/// The idle connections of all origins, roughly in the order in which they became idle, to find the
/// least valuable one when room is needed.
///
/// This costs exchanges almost nothing: a connection that is used keeps its position, which is
/// corrected only when it is examined.
package struct IdleOrder<Connection: IdleOrdered> {
    private var queue = FIFO<Connection>()
    /// Closed connections that are still in `queue`.
    private var closed = 0

    package init() {}

    /// How many more closed connections than others the queue may contain.
    private static var slack: Int { 32 }

    /// Records that a connection has become idle.
    package mutating func becameIdle(_ connection: Connection, at time: Int64) {
        connection.idleSince = time
        guard connection.queuedAt == nil else { return }
        connection.queuedAt = time
        queue.append(connection)
    }

    /// Records that a connection was closed.
    package mutating func closed(_ connection: Connection) {
        guard connection.queuedAt != nil else { return }
        closed += 1
        guard closed * 2 > queue.count + Self.slack else { return }
        queue.keep { !$0.isClosed }
        closed = 0
    }

    /// The connection that has been idle the longest; it keeps its position until it is closed.
    package mutating func longestIdle() -> Connection? {
        while let connection = queue.first {
            if connection.isIdle, connection.queuedAt == connection.idleSince {
                return connection
            }
            _ = queue.popFirst()
            if connection.isClosed { closed -= 1 }
            connection.queuedAt = nil
            if connection.isIdle {
                becameIdle(connection, at: connection.idleSince)
            }
        }
        return nil
    }
}
