/// Whether the gateway takes new work, and why not.
package enum Readiness: Sendable, Equatable {
    /// Every listener is up.
    case ready
    /// Some listeners are not up yet.
    case starting(listenersUp: Int, listenersConfigured: Int)
    /// The gateway is shutting down and finishes what is in flight.
    case draining

    /// The readiness of a gateway with so many of its listeners up.
    package init(listenersUp: Int, listenersConfigured: Int, isDraining: Bool) {
        if isDraining {
            self = .draining
        } else if listenersUp < listenersConfigured {
            self = .starting(listenersUp: listenersUp, listenersConfigured: listenersConfigured)
        } else {
            self = .ready
        }
    }

    /// The state's name: `ready`, `starting`, `draining`.
    package var label: StaticString {
        switch self {
        case .ready: "ready"
        case .starting: "starting"
        case .draining: "draining"
        }
    }

    /// What a person is told.
    package var explanation: String {
        switch self {
        case .ready: "ready"
        case .starting(let up, let configured): "starting: \(up) of \(configured) listeners are up"
        case .draining: "draining: no new connections are accepted"
        }
    }
}
