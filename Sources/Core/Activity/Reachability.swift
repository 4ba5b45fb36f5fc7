/// Whether a configured host can be reached, as far as is known.
///
///                     connection failed, probe failed
///        ┌─────────┐ ─────────────────────────────────► ┌──────────────┐
///        │ unknown │                                    │ notReachable │
///        └─────────┘ ◄───────────────────────────────── └──────────────┘
///           │   ▲                    reset                 ▲        │
///           │   │                                          │        │ response received,
///           │   │ reset              connection failed,    │        │ probe succeeded
///           │   │                          probe failed    │        ▼
///           │   └────────────────────────────────────── ┌──────────────┐
///           └─────────────────────────────────────────► │  reachable   │
///              response received, probe succeeded       └──────────────┘
///
/// One piece of evidence is enough to change the state in either direction: it is the outcome of
/// the latest attempt. `ReachabilityEvent` documents what counts as evidence.
package enum ReachabilityState: UInt8, Sendable, Equatable, CaseIterable {
    /// Nothing has been tried since the start or the last reset.
    case unknown
    /// The latest attempt failed to get a usable connection.
    case notReachable
    /// The latest attempt was answered.
    case reachable

    /// The state's name in metric labels and logs: `unknown`, `not_reachable`, `reachable`.
    package var label: StaticString {
        switch self {
        case .unknown: "unknown"
        case .notReachable: "not_reachable"
        case .reachable: "reachable"
        }
    }
}

/// The step at which a connection to a host failed.
package enum ConnectionStep: UInt8, Sendable, Equatable, CaseIterable {
    /// The name has no address, or no name server answered.
    case nameResolution
    /// Every address refused, was unreachable or timed out.
    case connect
    /// The handshake failed, or the peer was not trusted: whoever answered is not the host.
    case tls

    /// The step's name in logs: `dns`, `connect`, `tls`.
    package var label: StaticString {
        switch self {
        case .nameResolution: "dns"
        case .connect: "connect"
        case .tls: "tls"
        }
    }
}

/// What was learned about a host.
///
/// A response counts whatever its status: even an error comes from a host that was reached.
/// Anything that provides no information about the host is not an event: an exchange that the
/// gateway refused, a connection limit or a missing descriptor on this side, a client that went
/// away, and a connection that was established but then closed or timed out before a response
/// (there was a connection; the next attempt will show more).
package enum ReachabilityEvent: Sendable, Equatable {
    /// A final response head arrived, with any status.
    case responseReceived
    /// No usable connection could be made.
    case connectionFailed(ConnectionStep)
    /// The periodic probe was answered, with any status.
    case probeSucceeded
    /// The periodic probe got no connection, or no answer in time.
    case probeFailed
    /// What was known is obsolete: the host's entry in the configuration changed, or the network
    /// did.
    case reset
}

/// A transition that took place, for logging and display.
package struct ReachabilityChange: Sendable, Equatable {
    /// The state that was left.
    package var from: ReachabilityState
    /// The state that was entered; differs from `from`.
    package var to: ReachabilityState
    /// What caused it.
    package var event: ReachabilityEvent

    /// Creates a change from `from` to `to`, caused by `event`.
    package init(from: ReachabilityState, to: ReachabilityState, event: ReachabilityEvent) {
        self.from = from
        self.to = to
        self.event = event
    }
}

extension ReachabilityState {
    /// The transition function. The only action of a transition is to report it, which is up to the
    /// caller.
    @inlinable
    package func next(after event: ReachabilityEvent) -> ReachabilityState {
        switch (self, event) {
        case (.unknown, .responseReceived), (.unknown, .probeSucceeded): .reachable
        case (.unknown, .connectionFailed), (.unknown, .probeFailed): .notReachable
        case (.unknown, .reset): .unknown
        case (.notReachable, .responseReceived), (.notReachable, .probeSucceeded): .reachable
        case (.notReachable, .connectionFailed), (.notReachable, .probeFailed): .notReachable
        case (.notReachable, .reset): .unknown
        case (.reachable, .responseReceived), (.reachable, .probeSucceeded): .reachable
        case (.reachable, .connectionFailed), (.reachable, .probeFailed): .notReachable
        case (.reachable, .reset): .unknown
        }
    }
}
