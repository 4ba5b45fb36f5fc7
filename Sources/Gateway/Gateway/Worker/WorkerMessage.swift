import EventLoop
import HTTPCore
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS

/// What a worker is told by other threads.
package enum WorkerMessage: Sendable {
    /// Another configuration is in force, with these listening sockets.
    case configure(PolicySnapshot, [ListenerSocket])
    /// The gateway has become busy or quiet: the activity indicator is to be told.
    case activityChanged
    /// Another worker asks for the places of client connections.
    case roomWanted(RoomRequest)
    /// All workers have answered this one's request for places.
    case roomMade(RoomRequest)
    /// Another worker has run out of descriptors: idle client connections make room.
    case descriptorsWanted
    /// The certificate for the client's connection of the token, or why there is none.
    case certificateIssued(Token, Result<TLSServerIdentity, IssuanceFailure>)
    /// Accept nothing more, finish what is in flight.
    case drain
    /// End now.
    case stop
}

/// A listening socket that a worker takes over.
package struct ListenerSocket: Sendable {
    package enum Role: Sendable {
        case forward
        case reverse(ReverseUpstream)
        case admin
    }

    package var name: String
    package var endpoint: Endpoint
    package var role: Role
    /// The index of its name (`RouteLabels`).
    package var label: LabelIndex
    package var descriptor: Int32
}

extension ListenerSocket {
    /// Whether it is the administration's, which may share its name with a listener.
    var isAdmin: Bool { if case .admin = role { true } else { false } }
}

extension ListenerSocket.Role {
    /// What the requests of the listener's clients are for.
    var ingressRole: Ingress.Role {
        switch self {
        case .forward: .forward
        case .reverse(let upstream): .reverse(upstream)
        case .admin: .admin
        }
    }
}
