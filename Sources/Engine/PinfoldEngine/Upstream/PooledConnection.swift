import EventLoop
import HTTPCore
import PinfoldTLS

/// A connection to a server as the pool sees it, whatever protocol version it speaks. It carries
/// streams: one at a time in HTTP/1, or as many as its server allows.
///
/// The pool, the order of idle connections, the limits and the traces are written to this protocol.
/// Which class a connection is of is decided where it is made.
protocol PooledConnection: EventHandler, EnvironmentPart, IdleOrdered {
    /// The origin whose requests it carries.
    var origin: Origin { get }
    /// The address it is connected to.
    var endpoint: Endpoint { get }
    /// How it was made.
    var timeline: ConnectionTimeline { get }
    /// The client for whose request or CONNECT it was made; `nil` if for no client, or for one that
    /// has left.
    var client: IPNetwork? { get }
    /// The permits that it holds.
    var permits: Permits { get set }
    /// When the verdict on the server expires, in seconds since 1970; `nil` if never.
    var trustEnds: Int64? { get }
    /// How many exchanges it carried before the current ones.
    var uses: Int { get }
    /// Whether a request was sent on it and answered.
    var hasCarriedRequest: Bool { get }

    /// Whose connection it is, if it is of one client only; `nil` for most.
    var privateUse: PrivateUse? { get }

    /// Whether several exchanges can share it.
    var isShared: Bool { get }
    /// Whether it is established and another stream can be opened on it.
    var hasRoom: Bool { get }
    /// Opens a stream for a consumer, which has it until the response has ended or one side gives
    /// up.
    func open(for consumer: any UpstreamConsumer) -> any UpstreamStream

    /// Whether the server has sent anything on a connection that has just been established.
    func hasUnsolicitedData() -> Bool
    /// Whether an idle connection has no bytes, end or error to be read.
    var isQuiet: Bool { get }
    /// Handles what may have arrived on an idle connection whose last exchange left an unread edge
    /// behind.
    func recheck()
    /// Handles the reviewer's answer.
    func reviewed(_ answer: ReviewAnswer)
    /// Closes it later, unless it is used until then.
    func close(ifIdleFor milliseconds: Int64)
    /// Opens no more streams on it, and closes it when those that it has have ended.
    func retire()
    func close()
}

extension PooledConnection {
    var privateUse: PrivateUse? { nil }
}

/// A member of the order of idle connections to servers.
struct IdlePooledConnection: IdleOrdered {
    let connection: any PooledConnection

    var isIdle: Bool { connection.isIdle }
    var isClosed: Bool { connection.isClosed }
    var idleSince: Int64 {
        get { connection.idleSince }
        nonmutating set { connection.idleSince = newValue }
    }
    var queuedAt: Int64? {
        get { connection.queuedAt }
        nonmutating set { connection.queuedAt = newValue }
    }
}
