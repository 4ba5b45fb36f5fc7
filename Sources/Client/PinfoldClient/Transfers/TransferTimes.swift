/// How long the parts of an exchange took, in microseconds.
package struct TransferTimes: Sendable, Equatable {
    /// From the request's order to its beginning: how long it waited for others.
    var queued: Int64 = 0
    /// The name's lookup; nil: it was not looked up, or a connection was used again.
    var lookup: Int64?
    /// Until a connection was established, the lookup not included; nil as above.
    var connect: Int64?
    /// What a proxy took to open a tunnel; nil as above, and without a tunnel.
    var tunnel: Int64?
    /// The TLS handshake; nil as above, and for clear text.
    var handshake: Int64?
    /// From the request's beginning to the head of the response.
    var firstByte: Int64?
    /// From the request's order to the response's end.
    var total: Int64 = 0
    /// The connection carried other requests before.
    var wasReused = false
    /// The response came from the session's cache.
    var cache = CacheUse.none
    var sentBytes: Int64 = 0
    var receivedBytes: Int64 = 0
    var server: String?
}
