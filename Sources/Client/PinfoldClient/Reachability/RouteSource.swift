import HTTPCore

/// The kernel's routing information, and a notification of its changes.
struct RouteSource: Sendable {
    /// Becomes readable when there are changes.
    let descriptor: Int32
    /// Reads the changes since the last call. Returns `false` if there are none.
    let takeChanges: @Sendable () throws(NetlinkError) -> Bool
    /// Returns how an address can be reached now.
    let status: @Sendable (IPAddress) throws(NetlinkError) -> NetworkStatus
    /// Returns whether the Internet can be reached now.
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

    /// A route socket of the kernel, which is closed with the last copy of this value.
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
