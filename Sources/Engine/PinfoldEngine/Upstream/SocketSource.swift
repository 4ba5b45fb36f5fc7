import EventLoop
import HTTPCore

/// The source of connections to servers: the system's sockets, or a test's replacement.
package protocol SocketSource: AnyObject {
    /// Starts a connection. The descriptor becomes writable when it is established or has failed;
    /// `connectionError` then says which.
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32
    /// Why the connection failed; `nil` if it is established. Called once.
    func connectionError(_ descriptor: Int32) -> Errno?
}

/// The system's sockets.
final class SystemSockets: SocketSource {
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        try Sockets.connect(to: endpoint)
    }

    func connectionError(_ descriptor: Int32) -> Errno? { Sockets.connectionError(descriptor) }
}
