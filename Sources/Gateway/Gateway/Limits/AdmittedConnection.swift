import EventLoop
import PinfoldEngine
import PinfoldTLS

/// A client's connection as the worker and its limits see it, whatever protocol version it speaks
/// and however many streams it carries. The exchanges of its requests see a ``DownstreamStream``
/// each.
///
/// Which class a connection is of is decided where it is accepted.
protocol AdmittedConnection: EventHandler, IdleOrdered, UnfinishedInput {
    /// For operations on the socket itself.
    var descriptor: Int32 { get }
    var ingress: Ingress { get }
    /// The ingress from outside: that of its tunnel, if it is inside one.
    var outerIngress: Ingress { get }
    /// The intercepted tunnel that it is the inside of, or `nil` for most.
    var tunnel: InterceptedTunnel? { get }
    /// Its entry among its client's connections here; `nil` for the administration's, and once it
    /// is gone.
    var share: ClientShareMember? { get set }
    /// Whether it is in the orders of idle connections, or need not be.
    var isInIdleOrder: Bool { get set }
    /// Whether everything on it has been answered, and it is only waiting to be closed.
    var isLingering: Bool { get }

    /// Whether its client has just connected, and is about to send its first request.
    var awaitsFirstRequest: Bool { get }
    /// Whether a client may send a request on it at any time, which would be lost if the
    /// connection were closed while it is idle.
    var mayLoseRequest: Bool { get }

    /// Begins to serve; the connection must be registered.
    func start()
    /// Receives the certificate that its handshake waits for, on the worker's thread.
    func certificateIssued(_ result: Result<TLSServerIdentity, IssuanceError>)
    /// Asks it to end: at once if idle, otherwise after the current exchanges.
    func drain()
    /// Ends at once for another connection, which takes over its permits. A request that was
    /// arriving receives the reason, as far as the socket accepts it.
    func makeRoom(handingOver permits: ClientPermits)
    /// Ends at once, whatever is in progress.
    func cutOff()
    func close()
}

extension AdmittedConnection {
    var awaitsFirstRequest: Bool { false }
    var mayLoseRequest: Bool { false }
}

/// A member of the order of idle connections of all clients.
struct IdleAdmittedConnection: IdleOrdered {
    let member: ClientShareMember
    var connection: any AdmittedConnection { member.connection }

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

/// A connection that lingers, among those of its worker that do. The connection refers to it until
/// it is closed.
final class LingeringConnection: QueueMember {
    let connection: any AdmittedConnection
    var nextInQueue: LingeringConnection?
    var previousInQueue: LingeringConnection?

    init(_ connection: any AdmittedConnection) { self.connection = connection }
}
