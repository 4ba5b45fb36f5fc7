import HTTPCore
import PinfoldMetrics
import PinfoldTLS

/// How long the phases of an exchange took, in microseconds.
package struct TransferTimes: Sendable, Equatable {
    /// The time in the queue.
    var queued: Int64 = 0
    /// The duration of the name resolution, or `nil` if there was none or a connection was reused.
    var lookup: Int64?
    /// The duration of connecting, without the name resolution; `nil` in the same cases.
    var connect: Int64?
    /// How long a proxy took to open a tunnel; `nil` in the same cases, and without a tunnel.
    var tunnel: Int64?
    /// The duration of the TLS handshake; `nil` in the same cases, and in clear text.
    var handshake: Int64?
    /// From the request's beginning to the head of the response.
    var firstByte: Int64?
    /// What it spent its time on, without that in the queue of the session.
    var phases = PhaseTimes()
    /// From the time the request is made to the response's end.
    var total: Int64 = 0
    /// Whether the connection had carried other requests before.
    var wasReused = false
    /// What the connection carries; `nil` if there was none.
    var carrier: HTTPCarrier?
    /// What the handshake agreed on, if somebody wants to know and the connection is a new one.
    var tls: TLSSummary?
    /// How the response relates to the session's cache.
    var cache = CacheUse.none
    /// Whether the server responded instead of asking for the content, of which nothing was read.
    var withheldContent = false
    var sentBytes: Int64 = 0
    var receivedBytes: Int64 = 0
    var server: String?
}
