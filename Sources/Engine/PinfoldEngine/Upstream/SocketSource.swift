import EventLoop
import HTTPCore

/// Where connections to servers begin: the system's sockets, or what a test has in their place.
package protocol SocketSource: AnyObject {
    /// Starts a connection. The descriptor becomes writable when it is established or has failed;
    /// `connectionError` then tells which.
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32
    /// Why the connection failed, asked once; nil: it is established.
    func connectionError(_ descriptor: Int32) -> Errno?
}

/// The system's sockets.
final class SystemSockets: SocketSource {
    func connect(to endpoint: Endpoint) throws(Errno) -> Int32 {
        try Sockets.connect(to: endpoint)
    }

    func connectionError(_ descriptor: Int32) -> Errno? { Sockets.connectionError(descriptor) }
}
