import EventLoop

/// What `IdleOrder` keeps with a connection, and asks of it.
package protocol IdleOrdered: AnyObject {
    var isIdle: Bool { get }
    var isClosed: Bool { get }
    /// When it became idle: in the loop's milliseconds, of which several connections may share one,
    /// or in a count that rises each time.
    var idleSince: Int64 { get set }
    /// The time that its place in the order stands for; nil: it has none.
    var queuedAt: Int64? { get set }
}

/// The idle connections of all origins, about in the order in which they became idle, to find the
/// one that is worth the least when room is needed.
///
/// Exchanges pay next to nothing for it: a connection that is used keeps its place, and gets its
/// true one only when it is looked at.
package struct IdleOrder<Connection: IdleOrdered> {
    private var queue = FIFO<Connection>()
    /// Closed connections that are still in `line`.
    private var closed = 0

    package init() {}

    /// Closed connections that may be kept in the line, and as many more as there are others.
    private static var slack: Int { 32 }

    /// Notes that a connection has become idle.
    package mutating func becameIdle(_ connection: Connection, at time: Int64) {
        connection.idleSince = time
        guard connection.queuedAt == nil else { return }
        connection.queuedAt = time
        queue.append(connection)
    }

    /// Notes that a connection was closed.
    package mutating func closed(_ connection: Connection) {
        guard connection.queuedAt != nil else { return }
        closed += 1
        guard closed * 2 > queue.count + Self.slack else { return }
        queue.keep { !$0.isClosed }
        closed = 0
    }

    /// The connection that has been idle the longest; it keeps its place until it is closed.
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
