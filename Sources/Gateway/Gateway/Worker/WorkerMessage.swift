import EventLoop
import HTTPCore
import PinfoldConfiguration
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
    /// Another worker accepted this connection, for this one to serve, on a listener that has this
    /// name and address.
    case accepted(Int32, Endpoint, name: String, at: Endpoint)
    /// Somebody looks at exchanges: report all of them.
    case watchFlows
    /// A recording has begun or ended.
    case followRecordings(RecordingRound)
    /// Somebody wants to know what is under way.
    case reportTransfers(TransferRound)
    /// The loop shows that it turns, by answering.
    case answer(round: UInt64)
    /// Another worker has run out of descriptors: close idle client connections.
    case descriptorsWanted
    /// The certificate for the client connection with this token, or why there is none.
    case certificateIssued(Token, Result<TLSServerIdentity, IssuanceError>)
    /// Accept nothing more, and finish what is in progress.
    case drain
    /// A successor listens on the administrative address: stop to.
    case endAdministration
    /// Accept nothing more, because a successor accepts on the same sockets: the administration
    /// stops as well, and idle clients may still send a request.
    case handOver
    /// Begin to accept: the predecessor stops to.
    case accept
    /// The successor is gone: accept again, on these sockets.
    case resume([ListenerSocket])
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
    /// The name under which the service manager passed it; `nil` if it was opened here.
    package var passedAs: String?
    /// Whether all workers accept from this one socket.
    package var isShared = false
    /// What its clients speak.
    package var speaks = Ingress.ClientProtocol.http
    /// The path of a Unix socket, which has no endpoint; `nil` for most.
    package var path: String?
}

extension ListenerConfiguration.Kind {
    /// What a listener's clients speak.
    var clientProtocol: Ingress.ClientProtocol {
        switch self {
        case .forward, .reverse, .balanced: .http
        case .socks5: .socks5
        case .transparent(let options): .transparent(options.source)
        }
    }
}

extension ListenerSocket {
    /// Whether it belongs to the administration, which may share its name with a listener.
    var isAdmin: Bool { role == .admin }

    /// Where it listens, as logs name it.
    var address: String { path.map { UnixSocketPath.scheme + $0 } ?? "\(endpoint)" }
}
