import Addressing
import CacheStore
import EventLoop
import Resolver

/// What a worker is told by other threads.
package enum WorkerMessage: Sendable {
    /// A lookup's answer, for the connect operation of the token.
    case resolved(Token, ResolveResult)
    /// More addresses of the same name.
    case resolvedLater(Token, ResolvedAnswer)
    /// The disk tier's answer, for the exchange of the token.
    case loaded(Token, LoadResult)
    /// A part of a body on disk.
    case chunk(Token, ChunkResult)
    /// The disk has followed what is being stored, for the exchange of the token.
    case storesDrained(Token)
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
    /// A place of a limit that this worker stood in line for.
    case placeGranted(SharedLimit)
    /// Another worker waits for a connection: an idle one makes way.
    case connectionWanted(ConnectionQuestion)
    /// All workers have answered this one's question for an idle connection.
    case connectionAnswered(ConnectionQuestion)
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
    package var label: Int
    package var descriptor: Int32
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
