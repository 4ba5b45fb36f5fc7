import HTTPCore
import Reachability

/// What is asked of the kernel about routes, and what tells of their changes.
struct RouteSource: Sendable {
    /// Is readable when there are changes to take.
    let descriptor: Int32
    /// Takes what has changed since the last time; false: nothing has.
    let takeChanges: @Sendable () throws(NetlinkError) -> Bool
    /// How an address can be reached now.
    let status: @Sendable (IPAddress) throws(NetlinkError) -> NetworkStatus
    /// Whether the Internet can be reached now.
    let statusOfInternet: @Sendable () throws(NetlinkError) -> NetworkStatus

    init(
        descriptor: Int32, takeChanges: @escaping @Sendable () throws(NetlinkError) -> Bool,
        status: @escaping @Sendable (IPAddress) throws(NetlinkError) -> NetworkStatus,
        statusOfInternet: @escaping @Sendable () throws(NetlinkError) -> NetworkStatus
    ) {
        self.descriptor = descriptor
        self.takeChanges = takeChanges
        self.status = status
        self.statusOfInternet = statusOfInternet
    }

    /// The kernel itself: a route socket, which is closed with the last copy of this value.
    static func kernel() throws(NetlinkError) -> RouteSource {
        let holder = Holder(try RouteSocket())
        return RouteSource(
            descriptor: holder.socket.descriptor,
            takeChanges: { () throws(NetlinkError) in try holder.socket.takeChanges() },
            status: { (address) throws(NetlinkError) in try RouteSocket.status(of: address) },
            statusOfInternet: { () throws(NetlinkError) in try RouteSocket.statusOfInternet() })
    }

    private final class Holder: Sendable {
        let socket: RouteSocket

        init(_ socket: consuming RouteSocket) { self.socket = socket }
    }
}
