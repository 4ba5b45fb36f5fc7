import HTTPCore

// Idle connections that have not carried a request: made for a CONNECT whose tunnel is intercepted,
// so that the server is verified before the response, or for a request whose client has left. Most
// are used immediately or never, and a client can cause one for every name that it makes up.
extension UpstreamPool {
    /// How many of them a worker keeps, and how many for one client. Beyond either, the oldest one
    /// of the client that has the most is closed: its request then needs a new connection.
    static let unusedLimit = 1024
    static let unusedLimitOfClient = 128
    /// How long such a connection is kept, unless the environment keeps it as long as others.
    static let unusedMilliseconds: Int64 = 5000

    /// Keeps a connection that has become idle.
    func keepUnused(_ connection: any PooledConnection, atMost milliseconds: Int64) {
        let client = connection.client
        unused.insert(connection, for: ObjectIdentifier(connection), of: client)
        connection.close(
            ifIdleFor: environment.keepsUnusedConnections
                ? milliseconds : min(milliseconds, Self.unusedMilliseconds))
        while unused.weight(of: client) > Self.unusedLimitOfClient,
            let oldest = unused.next(of: client)
        {
            discardIdle(oldest, .unused)
        }
        while unused.count > Self.unusedLimit, let oldest = unused.next() {
            discardIdle(oldest, .unused)
        }
    }

    /// A connection is no longer idle.
    func isNoLongerUnused(_ connection: any PooledConnection) {
        unused.remove(ObjectIdentifier(connection))
    }
}
