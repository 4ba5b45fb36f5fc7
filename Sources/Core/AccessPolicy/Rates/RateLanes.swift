import HTTPCore

/// The bytes that were used in a day.
struct DailyQuota: Sendable, Equatable {
    private var day = Int64.min
    private var bytes = 0

    /// What was used on a day. If the clock has gone back to the day before, the days are taken for
    /// the same: that gives nothing.
    func used(on day: Int64) -> Int {
        day == self.day || day == self.day &- 1 ? bytes : 0
    }

    /// What is left of a day's bytes.
    func left(of limit: Int, on day: Int64) -> Int { max(0, limit - used(on: day)) }

    mutating func use(_ count: Int, on day: Int64) {
        let used = used(on: day)
        if day != self.day &- 1 { self.day = day }
        bytes = used.addingReportingOverflow(count).overflow ? .max : used + count
    }

    /// Gives back what was taken on a day and not used.
    mutating func giveBack(_ count: Int, on day: Int64) {
        if used(on: day) > 0 { bytes = max(0, bytes - count) }
    }
}

/// Who waits for bytes of each direction, and what was taken of it.
struct RateLanes: Sendable {
    struct Lane: Sendable {
        var bucket = RateBucket()
        /// Streams that wait until it is their time.
        var waiting = 0
        /// The same of each client, where several share a limit.
        var waitingClients: [IPNetwork: Int] = [:]
    }

    private var down = Lane()
    private var up = Lane()

    subscript(lane: RateLane) -> Lane {
        get {
            switch lane {
            case .down: down
            case .up: up
            }
        }
        set {
            switch lane {
            case .down: down = newValue
            case .up: up = newValue
            }
        }
    }

    func isAtRest(at now: Int64) -> Bool {
        RateLane.allCases.allSatisfy {
            self[$0].waiting == 0 && self[$0].bucket.isAtRest(at: now)
        }
    }
}

/// Bytes that a stream has been given, to be passed on at their time.
package struct ByteGrant: Sendable, Equatable {
    /// At least one.
    package let bytes: Int
    /// When they may be passed, in nanoseconds; it may be past.
    package let time: Int64
    /// The time in which they are earned, in nanoseconds.
    package let cost: Int64

    package init(bytes: Int, time: Int64, cost: Int64) {
        self.bytes = bytes
        self.time = time
        self.cost = cost
    }
}

extension RateState {
    /// How long the bytes of one turn take, in nanoseconds; twice as long if there are few. What
    /// may be passed after a pause is as much, so that ten seconds are exact to one in fifty.
    private static var turnTime: Int64 { 50_000_000 }
    /// The fewest bytes of a client's turn, and of a stream's, as long as a turn has as many.
    private static var fewBytes: Int { 4 << 10 }
    private static var leastBytes: Int { 256 }
    /// The most bytes of a turn: also of a direction that is only counted.
    private static var mostBytes: Int { 256 << 10 }

    /// Takes bytes for a stream, which passes them on at their time: each stream that waits has a
    /// turn, in which clients get the same, however many streams they have.
    ///
    /// - Parameters:
    ///   - late: how late it was served when it last waited, less what it has made up for since,
    ///     in nanoseconds.
    /// - Returns: `nil` if the bytes of the day are used up. If their time is to come, the stream
    ///   waits, and ``arrive(_:for:)`` or ``leave(_:_:for:unused:waits:_:)`` must follow.
    package mutating func draw(
        _ lane: RateLane, _ limits: RateLimits, for client: IPNetwork, wanted: Int,
        late: Int64 = 0, _ moment: RateMoment
    ) -> ByteGrant? {
        var bytes = Self.mostBytes
        if let speed = limits.speed(lane) { bytes = turnBytes(lane, speed, limits, client) }
        if let limit = limits.day {
            let left = quota.left(of: limit, on: moment.day)
            guard left > 0 else { return nil }
            // What one has in hand, others are missing.
            bytes = min(bytes, left, max(min(wanted, Self.mostBytes), left / 64))
            quota.use(bytes, on: moment.day)
        }
        guard let speed = limits.speed(lane) else {
            return ByteGrant(bytes: bytes, time: moment.now, cost: 0)
        }
        let cost = ByteCost.of(bytes, at: speed)
        let time = lanes[lane].bucket.take(
            cost, burst: Self.turnTime, late: min(Self.lateness, late), at: moment.now)
        if time > moment.now {
            lanes[lane].waiting += 1
            if limits.isShared { lanes[lane].waitingClients[client, default: 0] += 1 }
        }
        return ByteGrant(bytes: bytes, time: time, cost: cost)
    }

    /// The time has come that a stream waited for.
    package mutating func arrive(_ lane: RateLane, for client: IPNetwork) {
        lanes[lane].waiting = max(0, lanes[lane].waiting - 1)
        if let count = lanes[lane].waitingClients[client] {
            lanes[lane].waitingClients[client] = count > 1 ? count - 1 : nil
        }
    }

    /// A stream ends.
    /// - Parameters:
    ///   - unused: bytes that it was given and has not passed on.
    ///   - waits: whether it waited for their time.
    package mutating func leave(
        _ lane: RateLane, _ limits: RateLimits, for client: IPNetwork, unused: Int, waits: Bool,
        _ moment: RateMoment
    ) {
        if waits { arrive(lane, for: client) }
        guard unused > 0 else { return }
        if limits.day != nil { quota.giveBack(unused, on: moment.day) }
        if let speed = limits.speed(lane) {
            lanes[lane].bucket.giveBack(ByteCost.of(unused, at: speed))
        }
    }

    /// Counts bytes that have passed without having been asked for. Returns whether they should not
    /// have: they were faster than the limit, or more than the day has.
    /// - Parameter began: when the first of them passed, in nanoseconds.
    package mutating func meter(
        _ lane: RateLane, _ limits: RateLimits, bytes: Int, since began: Int64,
        _ moment: RateMoment
    ) -> Bool {
        guard bytes > 0 else { return false }
        var isExceeded = false
        if let limit = limits.day {
            isExceeded = quota.left(of: limit, on: moment.day) < bytes
            quota.use(bytes, on: moment.day)
        }
        if let speed = limits.speed(lane) {
            _ = lanes[lane].bucket.take(
                ByteCost.of(bytes, at: speed), burst: 0, late: moment.now - began,
                at: moment.now)
            // What exceeds counts once.
            let debt = lanes[lane].bucket.debt(at: moment.now)
            if debt > Self.turnTime {
                isExceeded = true
                lanes[lane].bucket.giveBack(debt)
            }
        }
        return isExceeded
    }

    /// The bytes of a client's next turn.
    private func turnBytes(
        _ lane: RateLane, _ speed: Int, _ limits: RateLimits, _ client: IPNetwork
    ) -> Int {
        let usual = speed / Int(1_000_000_000 / Self.turnTime)
        let turn = max(1, usual, min(2 * usual, Self.fewBytes))
        let waiting = lanes[lane]
        var (clients, streams) = (1, waiting.waiting + 1)
        if limits.isShared {
            let own = waiting.waitingClients[client] ?? 0
            clients = waiting.waitingClients.count + (own == 0 ? 1 : 0)
            streams = own + 1
        }
        // More clients wait longer for each other, rather than for less.
        let part = max(turn / clients, min(turn, Self.fewBytes))
        return max(min(part, Self.leastBytes), min(part / streams, Self.mostBytes))
    }
}
