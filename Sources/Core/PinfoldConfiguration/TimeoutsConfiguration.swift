/// The limits on times.
package struct TimeoutsConfiguration: Sendable, Equatable {
    /// From a request's first byte (or the connection's accept) to the end of its head.
    package var headMilliseconds: Int64 = 10_000
    /// A kept-alive connection between two requests.
    package var idleMilliseconds: Int64 = 60_000
    /// From the first connection attempt to an established connection, TLS included.
    package var connectMilliseconds: Int64 = 5_000
    /// From the request's last byte sent upstream to the response's first.
    package var firstByteMilliseconds: Int64 = 60_000
    /// Between two reads or writes of a body, on either side.
    package var bodyMilliseconds: Int64 = 60_000
    /// A tunnel or an upgraded connection without traffic in either direction.
    package var tunnelMilliseconds: Int64 = 600_000
    /// Between two parts of a `text/event-stream` response, in place of `body`.
    package var eventStreamMilliseconds: Int64 = 600_000
    /// How long a request waits for another request's response to the same URL; 0 if none waits.
    package var collapseMilliseconds: Int64 = 5_000
    /// How long listeners still accept after SIGTERM, while /readyz already answers 503.
    package var drainDelayMilliseconds: Int64 = 0
    /// How long exchanges in flight may then continue; 0 closes them immediately.
    package var graceMilliseconds: Int64 = 30_000
    /// How long a tunnel or an upgraded connection may then be without traffic.
    package var tunnelGraceMilliseconds: Int64 = 5_000

    /// Creates the defaults.
    package init() {}
}

/// A host entry's overrides of `timeouts`; `nil` if a time is not overridden.
package struct HostTimeouts: Sendable, Equatable {
    package var connectMilliseconds: Int64?
    package var firstByteMilliseconds: Int64?
    package var bodyMilliseconds: Int64?
    package var tunnelMilliseconds: Int64?
    package var eventStreamMilliseconds: Int64?

    package init() {}
}

extension TimeoutsConfiguration {
    /// These times, overridden by those of a host's entry.
    package func replaced(by host: HostTimeouts) -> TimeoutsConfiguration {
        var times = self
        times.connectMilliseconds = host.connectMilliseconds ?? connectMilliseconds
        times.firstByteMilliseconds = host.firstByteMilliseconds ?? firstByteMilliseconds
        times.bodyMilliseconds = host.bodyMilliseconds ?? bodyMilliseconds
        times.tunnelMilliseconds = host.tunnelMilliseconds ?? tunnelMilliseconds
        times.eventStreamMilliseconds = host.eventStreamMilliseconds ?? eventStreamMilliseconds
        return times
    }
}
