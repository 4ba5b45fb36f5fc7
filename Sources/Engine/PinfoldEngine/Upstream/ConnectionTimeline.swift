/// How long the steps to a connection took, in microseconds; `nil` if there was no such step.
package struct ConnectionTimes: Sendable, Equatable {
    /// DNS; `nil` if the answer was cached or the name needs no lookup.
    package var lookup: Int64?
    /// From the first address to an established connection.
    package var connect: Int64?
    /// The time that a proxy took to open a tunnel, including TLS with the proxy.
    package var tunnel: Int64?
    /// TLS.
    package var handshake: Int64?

    package init() {}
}
