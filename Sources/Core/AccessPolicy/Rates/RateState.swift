import HTTPCore

/// What has been used of a limit by one of those by whom it counts. The time and the limits are
/// arguments, so that a change of the configuration takes nothing away and gives nothing. Pure.
///
/// `Waiter` is whatever is told when it is the turn of a request that waits.
package struct RateState<Waiter> {
    /// What becomes of a request.
    package enum Admission {
        /// It may proceed; ``end(_:of:_:)`` must follow.
        case admitted
        /// It waits. Whoever waits looks again (``advance(_:_:)``) after these nanoseconds, if not
        /// told before.
        case waits(nanoseconds: Int64)
        case refused(RateReason)
    }

    /// The most requests that wait; once half do, one client may have a quarter.
    package static var waitingLimit: Int { 128 }
    /// The longest that a request waits, in nanoseconds.
    package static var longestWait: Int64 { 10_000_000_000 }
    /// How late somebody may be served who has waited, without losing anything, in nanoseconds.
    static var lateness: Int64 { 1_000_000_000 }

    private var requests = RateBucket()
    private var exchanges = 0
    private var members = RateMembers()
    private var queue = TurnQueue<Waiter>()
    private var waiting = PermitShares<IPNetwork>(permits: Self.waitingLimit)
    var lanes = RateLanes()
    var quota = DailyQuota()

    package init() {}

    /// How many requests wait.
    package var waitingCount: Int { queue.count }

    /// Whether nothing would be lost with it: nothing is owed or under way.
    package func isAtRest(_ moment: RateMoment) -> Bool {
        exchanges == 0 && queue.count == 0 && requests.isAtRest(at: moment.now)
            && lanes.isAtRest(at: moment.now) && quota.used(on: moment.day) == 0
    }

    // MARK: Requests

    /// A request asks to proceed.
    /// - Parameters:
    ///   - client: the network that it comes from.
    ///   - ticket: by which the request is known while it waits.
    ///   - mayWait: whether it may wait at all.
    package mutating func ask(
        _ limits: RateLimits, from client: IPNetwork, ticket: UInt64, _ waiter: Waiter,
        mayWait: Bool = true, _ moment: RateMoment
    ) -> Admission {
        if let limit = limits.day, quota.left(of: limit, on: moment.day) == 0 {
            return .refused(quotaRefusal(moment))
        }
        let count =
            limits.isShared
            ? members.note(client, within: presence(limits), at: moment.now) : 1
        let isDelaying = mayWait && limits.excess == .delay
        let obstacle = obstacle(
            limits, client, among: count, isFair: !isDelaying, moment.now)
        // Nobody overtakes those who wait.
        guard obstacle != nil || queue.count > 0 else {
            admit(limits, client, among: count, moment.now)
            return .admitted
        }
        let refusal =
            obstacle ?? RateReason(.requests, retryAfter: turn(limits, at: moment.now))
        guard isDelaying else { return .refused(refusal) }
        let wait = turn(limits, at: moment.now)
        guard wait <= Self.longestWait, waiting.take(for: limits.isShared ? client : nil) else {
            return .refused(RateReason(refusal.kind, retryAfter: wait))
        }
        queue.append(waiter, ticket: ticket, of: limits.isShared ? client : nil)
        return .waits(nanoseconds: wait)
    }

    /// Those whose turn has come, in their order, and after how many nanoseconds it is the turn of
    /// the first and of the last of the others. Each of these looks again after one such time: the
    /// one that has looked at the last's, as the others have the times before it, and one that was
    /// told to look at the first's.
    package struct Turns {
        package var ready: [Waiter] = []
        package var first: Int64 = 0
        package var last: Int64 = 0
    }

    /// Lets those proceed whose turn it is.
    package mutating func advance(_ limits: RateLimits, _ moment: RateMoment) -> Turns {
        var turns = Turns()
        while queue.count > 0, obstacle(limits, nil, among: 1, isFair: false, moment.now) == nil,
            let next = queue.popFirst()
        {
            waiting.release(for: next.client)
            // As somebody has waited all the time, nothing of the rate is lost by a late look.
            admit(limits, next.client, among: 1, late: Self.lateness, moment.now)
            turns.ready.append(next.element)
        }
        turns.first = turn(limits, behind: 0, at: moment.now)
        turns.last = turn(limits, behind: max(0, queue.count - 1), at: moment.now)
        return turns
    }

    /// A request waits no longer. Returns false if it does not wait: it may proceed, and must end.
    package mutating func leave(
        _ limits: RateLimits, from client: IPNetwork, ticket: UInt64
    ) -> Bool {
        // The limits may have changed meanwhile.
        for client in [client, nil] where queue.remove(ticket: ticket, of: client) {
            waiting.release(for: client)
            return true
        }
        return false
    }

    /// Whose turn is next.
    package var next: Waiter? { queue.first }

    /// A request that was admitted has ended.
    package mutating func end(from client: IPNetwork) {
        exchanges = max(0, exchanges - 1)
        members.end(client)
    }

    /// What keeps a request from proceeding; `nil` if nothing does.
    /// - Parameters:
    ///   - client: `nil` for any.
    ///   - isFair: whether the client's share matters.
    private func obstacle(
        _ limits: RateLimits, _ client: IPNetwork?, among count: Int, isFair: Bool, _ now: Int64
    ) -> RateReason? {
        let isFair = isFair && limits.isShared && count > 1
        if let limit = limits.exchanges {
            let isScarce = exchanges >= max(1, limit / 2)
            if exchanges >= limit
                || isFair && isScarce
                    && client.map({
                        !members.hasShare($0, ofExchanges: limit, among: count)
                    }) ?? false
            {
                return RateReason(.exchanges, retryAfter: 0)
            }
        }
        guard let interval = limits.requests?.interval else { return nil }
        let burst = limits.requestBurst
        let wait = requests.wait(burst: Self.advance(interval, burst), at: now)
        if wait > 0 { return RateReason(.requests, retryAfter: wait) }
        guard isFair, let client else { return nil }
        // As long as half of the burst is there, anyone may take it.
        let slack = Self.advance(interval, burst - burst / 2)
        guard requests.wait(burst: slack, at: now) > 0 else { return nil }
        let share = RateShare(interval: interval, burst: burst, among: count)
        let own = members.wait(client, share, at: now)
        return own > 0 ? RateReason(.requests, retryAfter: own) : nil
    }

    private mutating func admit(
        _ limits: RateLimits, _ client: IPNetwork?, among count: Int, late: Int64 = 0,
        _ now: Int64
    ) {
        exchanges += 1
        var share: RateShare?
        if let interval = limits.requests?.interval {
            let burst = limits.requestBurst
            _ = requests.take(
                interval, burst: Self.advance(interval, burst), late: late, at: now)
            share = RateShare(interval: interval, burst: burst, among: count)
        }
        if limits.isShared, let client { members.admit(client, share, at: now) }
    }

    /// How much earlier than its time a request may come if `burst` may come at once.
    private static func advance(_ interval: Int64, _ burst: Int) -> Int64 {
        interval.multipliedSaturated(by: Int64(max(0, burst - 1)))
    }

    /// After how long it is the turn of a request that comes now, as far as the rate decides;
    /// whoever waits for the end of an exchange is told of it.
    private func turn(_ limits: RateLimits, at now: Int64) -> Int64 {
        turn(limits, behind: queue.count, at: now)
    }

    private func turn(_ limits: RateLimits, behind others: Int, at now: Int64) -> Int64 {
        guard let interval = limits.requests?.interval,
            exchanges < limits.exchanges ?? .max
        else { return Self.longestWait }
        return requests.wait(burst: Self.advance(interval, limits.requestBurst), at: now)
            .addingSaturated(interval.multipliedSaturated(by: Int64(others)))
    }

    /// For how long a client that has asked counts as one of those who share.
    private func presence(_ limits: RateLimits) -> Int64 {
        guard let interval = limits.requests?.interval else { return RateMembers.presence }
        return max(RateMembers.presence, interval.multipliedSaturated(by: 4))
    }

    func quotaRefusal(_ moment: RateMoment) -> RateReason {
        RateReason(
            .day,
            retryAfter: max(0, moment.secondsLeft).multipliedSaturated(by: 1_000_000_000))
    }
}

extension RateState: Sendable where Waiter: Sendable {}
