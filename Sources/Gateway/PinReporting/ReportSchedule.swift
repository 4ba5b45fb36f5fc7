/// Which report is delivered next: destinations take turns, and do not wait for one another. Each
/// has at most one report under way. Belongs to one thread.
struct ReportSchedule {
    /// The maximum number of simultaneous deliveries.
    static let maximumUnderWay = 8

    private var backoff = ReportBackoff()
    /// Destinations with a delivery under way.
    private(set) var underWay: Set<String> = []
    /// The turn in which each destination was last used.
    private var turns: [String: UInt64] = [:]
    private var turn: UInt64 = 0

    /// The report to deliver now, which then counts as under way: of the destinations that may be
    /// used, the one whose turn was longest ago, and of its reports the oldest of those with the
    /// fewest attempts. `nil` for none.
    ///
    /// - Parameters:
    ///   - items: oldest first.
    ///   - routes: destinations, by the names of pinsets.
    ///   - now: milliseconds.
    mutating func begin(
        _ items: [ReportSpool.Item], _ routes: [String: String], now: Int64
    ) -> (item: ReportSpool.Item, destination: String)? {
        guard underWay.count < Self.maximumUnderWay else { return nil }
        var best: (item: ReportSpool.Item, destination: String, turn: UInt64)?
        for item in items where !item.isUnderWay {
            guard let destination = routes[item.pinset], !underWay.contains(destination),
                backoff.retryAt(destination).map({ now >= $0 }) ?? true
            else { continue }
            let turn = turns[destination] ?? 0
            let isBetter = best.map { (turn, item.attempts) < ($0.turn, $0.item.attempts) }
            if isBetter ?? true { best = (item, destination, turn) }
        }
        guard let best else { return nil }
        turn += 1
        turns[best.destination] = turn
        underWay.insert(best.destination)
        return (best.item, best.destination)
    }

    /// When a destination that may not be used now may next be used, or `nil` if none has to wait,
    /// except for a delivery under way.
    func nextAttempt(
        _ items: [ReportSpool.Item], _ routes: [String: String], now: Int64
    ) -> Int64? {
        items.compactMap { item in
            guard let destination = routes[item.pinset], !underWay.contains(destination),
                let retryAt = backoff.retryAt(destination), retryAt > now
            else { return nil }
            return retryAt
        }.min()
    }

    /// Ends a delivery to a destination.
    mutating func end(_ destination: String) { underWay.remove(destination) }

    /// Called when a destination accepted a report, or rejected it permanently.
    ///
    /// - Returns: whether it had failed before.
    mutating func answered(_ destination: String) -> Bool {
        let hadFailed = backoff.retryAt(destination) != nil
        backoff.answered(destination)
        return hadFailed
    }

    /// A destination failed; see ``ReportBackoff/failed(_:now:asked:)``.
    mutating func failed(_ destination: String, now: Int64, asked: Int64?) -> Bool {
        backoff.failed(destination, now: now, asked: asked)
    }

    /// Forgets all other destinations.
    mutating func keep(only destinations: Set<String>) {
        backoff.keep(only: destinations)
        turns = turns.filter { destinations.contains($0.key) }
    }
}
