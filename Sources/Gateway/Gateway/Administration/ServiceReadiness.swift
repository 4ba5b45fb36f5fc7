/// Whether the gateway accepts new work, and if not, why.
package enum ServiceReadiness: Sendable, Equatable {
    /// Every listener is up.
    case ready
    /// Every listener is up, but the cache's disk tier is off for this reason, a token.
    case readyWithoutDisk(String)
    /// Some listeners are not up yet.
    case starting(listenersUp: Int, listenersConfigured: Int)
    /// Every listener is up, but no policy has been verified yet, or the one that was has expired
    /// and is not to be used any longer.
    case withoutPolicy(hasExpired: Bool)
    /// The gateway is shutting down and finishing what is in progress.
    case draining

    /// The readiness of a gateway with this many of its listeners up.
    package init(listenersUp: Int, listenersConfigured: Int, isDraining: Bool) {
        if isDraining {
            self = .draining
        } else if listenersUp < listenersConfigured {
            self = .starting(listenersUp: listenersUp, listenersConfigured: listenersConfigured)
        } else {
            self = .ready
        }
    }

    /// Whether new work is accepted.
    package var isReady: Bool {
        switch self {
        case .ready, .readyWithoutDisk: true
        case .starting, .withoutPolicy, .draining: false
        }
    }

    /// The state's name: `ready`, `starting`, `draining`.
    package var label: StaticString {
        switch self {
        case .ready, .readyWithoutDisk: "ready"
        case .starting, .withoutPolicy: "starting"
        case .draining: "draining"
        }
    }

    /// The text of the page.
    package var explanation: String {
        switch self {
        case .ready: "ready"
        case .readyWithoutDisk(let reason):
            "ready, but the cache's disk tier is off (\(reason)): nothing is kept across restarts"
        case .starting(let up, let configured): "starting: \(up) of \(configured) listeners are up"
        case .withoutPolicy(hasExpired: false): "starting: no policy has been verified yet"
        case .withoutPolicy(hasExpired: true): "starting: the policy has expired; another is needed"
        case .draining: "draining: no new connections are accepted"
        }
    }
}
