import AccessPolicy
import HTTPCore

/// What one direction of an exchange may pass on now, within the rate of a rule. It takes bytes
/// from the account of the rule a turn at a time, so that the account is not locked for each part.
struct BytePace {
    enum Allowance {
        /// So many bytes may be passed on now.
        case bytes(Int)
        /// None may, until so many milliseconds have passed.
        case wait(milliseconds: Int64)
        /// None may on this day.
        case exhausted(RateReason)
    }

    private let use: RateUse
    private let lane: RateLane
    /// Bytes in hand; negative if more were passed on than there were.
    private var bytes = 0
    /// When these may be passed on, if that is to come.
    private var time: Int64?
    /// How late it was when that came, less what has been made up for.
    private var late: Int64 = 0

    /// - Returns: `nil` if this direction is not limited.
    init?(_ use: RateUse, _ lane: RateLane) {
        guard use.limits.counts(lane) else { return nil }
        self.use = use
        self.lane = lane
    }

    /// - Parameter wanted: how many bytes are there; at least one.
    mutating func allowance(wanted: Int) -> Allowance {
        if time == nil, bytes > 0 { return .bytes(bytes) }
        let moment = use.moment
        if let time {
            guard time <= moment.now else { return wait(until: time, moment) }
            self.time = nil
            late = moment.now - time
            use.account.state.withLock { $0.arrive(lane, for: use.client) }
            if bytes > 0 { return .bytes(bytes) }
        }
        while bytes <= 0 {
            let (late, wanted) = (late, max(1, wanted))
            let grant = use.account.state.withLock { state in
                state.draw(lane, use.limits, for: use.client, wanted: wanted, late: late, moment)
            }
            guard let grant else {
                use.exceeded()
                return .exhausted(
                    RateReason(.day, retryAfter: moment.secondsLeft * 1_000_000_000))
            }
            bytes += grant.bytes
            self.late = max(0, late - grant.cost)
            if grant.time > moment.now {
                time = grant.time
                use.paced()
                return wait(until: grant.time, moment)
            }
        }
        return .bytes(bytes)
    }

    private func wait(until time: Int64, _ moment: RateMoment) -> Allowance {
        .wait(milliseconds: max(1, (time - moment.now + 999_999) / 1_000_000))
    }

    /// Bytes have been passed on; more than allowed only if they had been read before.
    mutating func spend(_ count: Int) { bytes -= count }

    /// Nothing more follows.
    mutating func end() {
        let (unused, waits, moment) = (max(0, bytes), time != nil, use.moment)
        (bytes, time) = (0, nil)
        guard unused > 0 || waits else { return }
        use.account.state.withLock { state in
            state.leave(
                lane, use.limits, for: use.client, unused: unused, waits: waits, moment)
        }
    }
}
