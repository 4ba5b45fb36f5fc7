import HTTPCore

// Idle connections that have carried no request: made for a CONNECT whose tunnel is intercepted, so
// that the server is verified before the answer, or for a request whose client has left. Most are
// used at once or never, and a client makes one for each name that it can think of.
extension UpstreamPool {
    /// How many of them a worker keeps, and how many for one client. At either the oldest of the
    /// client that has the most is closed: its request is then made on a connection of its own.
    static let unusedLimit = 1024
    static let unusedLimitOfClient = 128
    /// How long one is kept.
    static let unusedMilliseconds: Int64 = 5000

    /// One has become idle.
    func keepUnused(_ connection: UpstreamConnection, atMost milliseconds: Int64) {
        let client = connection.client
        unused.insert(connection, for: ObjectIdentifier(connection), of: client)
        environment.loop.setDeadline(
            connection, after: min(milliseconds, Self.unusedMilliseconds))
        while unused.weight(of: client) > Self.unusedLimitOfClient,
            let oldest = unused.next(of: client)
        {
            discardIdle(oldest, .unused)
        }
        while unused.count > Self.unusedLimit, let oldest = unused.next() {
            discardIdle(oldest, .unused)
        }
    }

    /// One is idle no longer.
    func isNoLongerUnused(_ connection: UpstreamConnection) {
        unused.remove(ObjectIdentifier(connection))
    }
}
