import EventLoop
import HTTPCore
import PinfoldTLS

/// The addresses of an engine; empty if its name has none.
struct ServerAddresses: Sendable, Equatable {
    var addresses: [IPAddress]
    /// Why there are none.
    var problem = ""
}

/// Where a connection leads.
enum ServerPlace: Sendable, CustomStringConvertible {
    case unix(path: String)
    /// - Parameter host: a name, or an address without brackets.
    case tcp(host: String, port: UInt16, tls: TLSClientContext?)

    var description: String {
        switch self {
        case .unix(let path): path
        case .tcp(let host, let port, _):
            host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }

    /// Why a Unix socket cannot be connected to.
    static func problem(_ error: Errno, at path: String) -> String {
        switch error {
        case .noSuchFile: "there is no such socket"
        // The system does not tell the two apart.
        case .connectionRefused:
            UnixSockets.isSocket(at: path)
                ? "nobody listens at the socket" : "it is not a socket"
        case .accessDenied: "the gateway's user may not connect to the socket, or reach it"
        case .again: "as many connections wait at the socket as may"
        default: "\(error)"
        }
    }
}

/// How a server that speaks TLS answers clear text.
enum ClearText {
    /// What is said of one that has ended the connection before any reply.
    static let unread =
        "the server closed the connection before its first reply, as a port of TLS does"

    /// Whether bytes begin with an alert of TLS, which no reply begins with.
    static func isTLS(_ bytes: Slice<UnsafeMutableRawBufferPointer>) -> Bool {
        bytes.starts(with: [0x15, 0x03])
    }
}

extension SharedLevelReason {
    /// What breaks while the engine is being stopped or started is no matter of certificates.
    init(_ error: TLSError) {
        self =
            switch error {
            case .transport, .truncated, .unanswered: .unreachable
            default: .tls
            }
    }
}
