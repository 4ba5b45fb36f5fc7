import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// Messages to a worker from other threads.
package enum WorkerMessage: Sendable {
    /// Another configuration is in force, with these listening sockets.
    case configure(PolicySnapshot, [ListenerSocket])
    /// The gateway has become busy or quiet: notify the activity indicator.
    case activityChanged
    /// Another worker requests the permits of client connections.
    case permitsWanted(PermitRequest)
    /// All workers have responded to this one's request for permits.
    case permitsGranted(PermitRequest)
    /// Another worker has run out of descriptors: close idle client connections.
    case descriptorsWanted
    /// The certificate for the client connection with this token, or why there is none.
    case certificateIssued(Token, Result<TLSServerIdentity, IssuanceError>)
    /// Accept nothing more, and finish what is in progress.
    case drain
    /// End now.
    case stop
}

/// A listening socket that a worker takes over.
package struct ListenerSocket: Sendable {
    package var name: String
    package var endpoint: Endpoint
    /// What its clients' requests are for.
    package var role: Ingress.Role
    /// The index of its name (`RouteLabels`).
    package var label: LabelIndex
    package var descriptor: Int32
    /// The path of a Unix socket, which has no endpoint; `nil` for most.
    package var path: String?
}

extension ListenerSocket {
    /// Whether it belongs to the administration, which may share its name with a listener.
    var isAdmin: Bool { role == .admin }

    /// Where it listens, as logs name it.
    var address: String { path.map { UnixSocketPath.scheme + $0 } ?? "\(endpoint)" }
}
