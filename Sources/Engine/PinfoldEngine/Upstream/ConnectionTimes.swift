/// How long the steps to a connection took, in microseconds; nil: there was no such step.
package struct ConnectionTimes: Sendable, Equatable {
    /// DNS; nil where the answer was known, or the name needs none.
    package var lookup: Int64?
    /// From the first address to an established connection.
    package var connect: Int64?
    /// What a proxy took to open a tunnel, TLS with it included.
    package var tunnel: Int64?
    /// TLS.
    package var handshake: Int64?

    package init() {}
}
