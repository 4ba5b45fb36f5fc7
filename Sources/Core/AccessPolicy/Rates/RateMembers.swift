import HTTPCore

/// The clients that share one limit, as far as they have asked lately: each has a share once the
/// limit is nearly reached. Pure.
///
/// If there are more of them than can be told apart, those give way who have asked least lately of
/// the network (an IPv4 /24 or an IPv6 /48, which one subscriber may have) with the most clients.
/// They have a share again when they ask again.
struct RateMembers: Sendable {
    private struct Member: Sendable {
        var requests = RateBucket()
        var exchanges = 0
        var asked: Int64
    }

    /// The most clients that are told apart.
    static let limit = 4096
    /// For how long a client that has asked counts as one that shares, in nanoseconds.
    static let presence: Int64 = 2_000_000_000

    private var members = ShareTable<IPNetwork, Member>(limit: limit)
    private var prunedAt = Int64.min

    /// How many share.
    var count: Int { members.count }

    /// A client asks. Returns among how many the limit is shared.
    mutating func note(_ client: IPNetwork, within presence: Int64, at now: Int64) -> Int {
        if now.subtractingReportingOverflow(prunedAt).overflow || now - prunedAt >= presence / 4 {
            prunedAt = now
            members.removeAll { $1.exchanges == 0 && now - $1.asked >= presence }
        }
        if var member = members.use(client) {
            member.asked = now
            members.update(member, for: client, weight: 1)
        } else {
            members.set(Member(asked: now), for: client, of: Self.subscriber(of: client))
        }
        return max(1, members.count)
    }

    /// The network that one subscriber may have, of which a client is a part.
    private static func subscriber(of client: IPNetwork) -> IPNetwork {
        let length = client.address.family == .v4 ? 24 : 48
        return IPNetwork(
            masking: client.address, prefixLength: min(length, client.prefixLength)) ?? client
    }

    /// Whether a client may take one of `limit` exchanges, of which half are taken: as long as it
    /// has fewer than its share of them.
    func hasShare(_ client: IPNetwork, ofExchanges limit: Int, among count: Int) -> Bool {
        guard let member = members.value(of: client) else { return true }
        return member.exchanges < max(1, limit / max(1, count))
    }

    /// How long a client must wait for a request of its share; 0 if it need not.
    func wait(_ client: IPNetwork, _ share: RateShare, at now: Int64) -> Int64 {
        members.value(of: client)?.requests.wait(burst: share.burst, at: now) ?? 0
    }

    /// A request of the client is admitted.
    mutating func admit(_ client: IPNetwork, _ share: RateShare?, at now: Int64) {
        guard var member = members.value(of: client) else { return }
        member.exchanges += 1
        if let share { _ = member.requests.take(share.interval, burst: share.burst, at: now) }
        members.update(member, for: client, weight: 1)
    }

    /// It has ended.
    mutating func end(_ client: IPNetwork) {
        guard var member = members.value(of: client), member.exchanges > 0 else { return }
        member.exchanges -= 1
        members.update(member, for: client, weight: 1)
    }
}

/// What one client may take of a rate of requests.
struct RateShare: Sendable, Equatable {
    /// The time between two requests.
    let interval: Int64
    /// How much earlier they may come.
    let burst: Int64

    /// - Parameters:
    ///   - interval: the time between two requests of all.
    ///   - burst: how many requests of all may come at once.
    ///   - count: among how many the rate is shared.
    init(interval: Int64, burst: Int, among count: Int) {
        let count = max(1, count)
        self.interval = interval.multipliedSaturated(by: Int64(count))
        self.burst = self.interval.multipliedSaturated(by: Int64(max(0, burst / count - 1)))
    }
}
