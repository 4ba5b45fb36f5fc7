import HTTPCore

/// What a rule of `access.rules` limits (`rate`): how much of the requests that the rule decides
/// may pass, for each of those by whom it counts. What is `nil` is not limited.
package struct RateLimits: Sendable, Equatable {
    /// By whom is counted.
    package enum Basis: String, Sendable, Equatable, CaseIterable {
        /// By the client's network (`IPNetwork.init(client:)`).
        case client
        /// By the user; who is not known is counted by the client's network.
        case user
        /// By the first of the rule's groups that the user is a member of.
        case group
        /// All together.
        case rule
    }

    /// What happens to requests that exceed the rate, or the exchanges at once.
    package enum Excess: String, Sendable, Equatable, CaseIterable {
        /// They are refused (429).
        case refuse
        /// They wait for their turn, as far as not too many do, nor for too long.
        case delay
    }

    package var basis = Basis.client
    package var requests: RequestRate?
    /// How many requests may come at once after a pause; `nil` for those of one second, at least
    /// one.
    package var burst: Int?
    /// Exchanges at once, tunnels among them.
    package var exchanges: Int?
    /// Bytes per second of content to clients, and of tunnels in this direction.
    package var down: Int?
    /// The same from clients.
    package var up: Int?
    /// Bytes in both directions in a day.
    package var day: Int?
    package var excess = Excess.refuse

    package init() {}

    /// Whether nothing is limited.
    package var isEmpty: Bool {
        requests == nil && exchanges == nil && down == nil && up == nil && day == nil
    }

    /// How many requests may come at once after a pause.
    var requestBurst: Int { burst ?? max(1, requests.map(\.perSecond) ?? 1) }

    /// The bytes per second of a direction.
    package func speed(_ lane: RateLane) -> Int? {
        switch lane {
        case .down: down
        case .up: up
        }
    }

    /// Whether the bytes of a direction are counted at all.
    package func counts(_ lane: RateLane) -> Bool { day != nil || speed(lane) != nil }

    /// Whether several clients share what is limited.
    var isShared: Bool { basis != .client }
}

/// A direction of content.
package enum RateLane: Sendable, CaseIterable {
    /// To the client.
    case down
    /// From the client.
    case up
}

/// So many requests in a time.
package struct RequestRate: Sendable, Equatable {
    /// The units of time in configurations.
    package enum Unit: String, Sendable, Equatable, CaseIterable {
        case second = "s"
        case minute = "m"
        case hour = "h"
        case day = "d"

        package var seconds: Int64 {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3600
            case .day: 86_400
            }
        }
    }

    /// At least one.
    package let count: Int
    package let unit: Unit

    package init(count: Int, per unit: Unit) {
        self.count = max(1, count)
        self.unit = unit
    }

    /// The time between two requests at this rate, in nanoseconds, rounded up; at least 1.
    package var interval: Int64 {
        let period = unit.seconds * 1_000_000_000
        return max(1, (period + Int64(count) - 1) / Int64(count))
    }

    /// The whole requests in a second.
    var perSecond: Int { count / Int(unit.seconds) }
}

/// Why something exceeds its limits.
package struct RateReason: Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case requests
        case exchanges
        /// The bytes of the day.
        case day
    }

    package let kind: Kind
    /// After how many seconds to ask again, at least 1.
    package let retrySeconds: Int64

    package init(_ kind: Kind, retryAfter nanoseconds: Int64) {
        self.kind = kind
        retrySeconds = max(1, max(0, nanoseconds).addingSaturated(999_999_999) / 1_000_000_000)
    }
}

/// A moment, as limits need it.
package struct RateMoment: Sendable, Equatable {
    /// Nanoseconds of the monotonic clock.
    package var now: Int64
    /// The number of the local day, and the seconds until it is over.
    package var day: Int64
    package var secondsLeft: Int64

    package init(now: Int64, day: Int64 = 0, secondsLeft: Int64 = 86_400) {
        self.now = now
        self.day = day
        self.secondsLeft = secondsLeft
    }
}
