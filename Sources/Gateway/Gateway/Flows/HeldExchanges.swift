import HTTPCore

/// How many exchanges a worker holds: each takes an allocation and a lock that all workers share,
/// and neither a flood of requests that are refused nor somebody who looks at a busy gateway may
/// cost much.
///
/// One client network does not get all of it, so that one that floods does not hide what happens to
/// the others.
struct HeldExchanges {
    /// How many are held in a period.
    let limit: Int
    /// How many of them may be of one client network. Networks are told apart by a part of their
    /// hash: some share these.
    let networkLimit: Int
    /// In milliseconds.
    private let period: Int64
    private static let networks = 64

    /// Which period it is, of the monotonic clock.
    private var current = Int64.min
    private var count = 0
    private var counts = InlineArray<64, UInt8>(repeating: 0)

    private init(limit: Int, networkLimit: Int, period: Int64) {
        (self.limit, self.networkLimit, self.period) = (limit, networkLimit, period)
    }

    /// Failures: 50 in a second, half of them of one client network.
    static let failures = HeldExchanges(limit: 50, networkLimit: 25, period: 1000)

    /// How many exchanges are held in a second while somebody looks, by all workers.
    static let watchedPerSecond = 200

    /// What ends while somebody looks: a part of ``watchedPerSecond``, three quarters of it of one
    /// client network. The periods are short, so that what is held is spread over the second.
    static func watched(workers: Int) -> HeldExchanges {
        let limit = max(4, watchedPerSecond / 4 / workers)
        return HeldExchanges(limit: limit, networkLimit: limit - limit / 4, period: 250)
    }

    /// Whether another one is held, which is counted.
    /// - Parameters:
    ///   - network: its client's; asked for only if there is room for any.
    ///   - now: of the monotonic clock, in milliseconds.
    mutating func takes(_ network: @autoclosure () -> IPNetwork, at now: Int64) -> Bool {
        if now / period != current {
            current = now / period
            count = 0
            counts = InlineArray(repeating: 0)
        }
        guard count < limit else { return false }
        let place = network().hashValue & (Self.networks - 1)
        guard counts[place] < networkLimit else { return false }
        counts[place] += 1
        count += 1
        return true
    }
}
