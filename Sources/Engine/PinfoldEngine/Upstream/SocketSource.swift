import EventLoop
import HTTPCore

/// The source of connections to servers: the system's sockets, or a test's replacement.
package protocol SocketSource: AnyObject {
    /// Starts a connection. The descriptor becomes writable when it is established or has failed;
    /// `connectionError` then says which.
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32
    /// A connection to a Unix socket, which is made at once or not at all.
    func connect(toUnixSocket path: String) throws(Errno) -> Int32
    /// Why the connection failed; `nil` if it is established. Called once.
    func connectionError(_ descriptor: Int32) -> Errno?
}

extension SocketSource {
    package func connect(toUnixSocket path: String) throws(Errno) -> Int32 {
        try UnixSockets.connectAtOnce(to: path)
    }
}

/// The system's sockets.
final class SystemSockets: SocketSource {
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        try Sockets.connect(to: endpoint)
    }

    func connectionError(_ descriptor: Int32) -> Errno? { Sockets.connectionError(descriptor) }
}
