import HTTPCore

/// Who may start another lookup, so that one client or one dead zone does not take all the places.
///
/// While less than half of the places are taken, everybody may. From then on a client, and a zone,
/// that has a quarter of them gets no more. A zone in which one lookup after the other has timed
/// out is tried with a few at a time until something in it answers.
struct LookupShares: Sendable {
    /// What a lookup counts for.
    struct Ticket: Sendable {
        let client: IPNetwork?
        let zone: String
    }

    /// What is remembered of a zone in which lookups time out.
    private struct Failures: Sendable {
        /// Lookups that timed out since the last one that was answered.
        var timeouts = 0
        var lastTimeout: Int64 = 0
    }

    /// Time-outs in a row that make a zone a failing one.
    static let failingTimeouts = 8
    /// Lookups under way in a failing zone.
    static let failingPending = 4
    /// A zone without another time-out for so long is no longer a failing one.
    static let failingMilliseconds: Int64 = 10_000
    /// Zones remembered for their time-outs; each client has a share of them.
    static let maximumZones = 1024

    private var clients: PlaceShares<IPNetwork>
    private var zones: PlaceShares<String>
    private var failures = ShareTable<String, Failures>(limit: Self.maximumZones)

    /// - Parameter places: lookups under way at once.
    init(places: Int) {
        clients = PlaceShares(places: places)
        zones = PlaceShares(places: places)
    }

    /// Counts a lookup that begins, or says why it may not.
    mutating func begin(
        _ name: DomainName, client: IPNetwork?, nowMilliseconds now: Int64
    ) -> Result<Ticket, ResolveFailure> {
        guard !clients.isFull else { return .failure(.overloaded) }
        let zone = name.zone
        if let known = failures.use(zone), known.timeouts >= Self.failingTimeouts,
            now - known.lastTimeout < Self.failingMilliseconds,
            zones.taken(by: zone) >= Self.failingPending
        {
            return .failure(.zoneLimit)
        }
        guard clients.mayTake(for: client) else { return .failure(.clientLimit) }
        guard zones.take(for: zone) else { return .failure(.zoneLimit) }
        _ = clients.take(for: client)
        return .success(Ticket(client: client, zone: zone))
    }

    /// A lookup is over.
    mutating func end(_ ticket: Ticket, timedOut: Bool, nowMilliseconds now: Int64) {
        clients.giveBack(for: ticket.client)
        zones.giveBack(for: ticket.zone)
        guard timedOut else {
            failures.remove(ticket.zone)
            return
        }
        var known = failures.value(of: ticket.zone) ?? Failures()
        if now - known.lastTimeout >= Self.failingMilliseconds { known.timeouts = 0 }
        known.timeouts += 1
        known.lastTimeout = now
        failures.set(known, for: ticket.zone, of: ticket.client)
    }

    /// Nothing is under way any more.
    mutating func removeAll() { self = LookupShares(places: clients.places) }
}

extension DomainName {
    /// The part of the name that stands for whoever runs its servers: the last two labels, or three
    /// below a country's registry (`co.uk`, `com.au`).
    var zone: String {
        let labels = text.utf8.split(separator: UInt8(ascii: "."))
        var kept = 2
        if labels.count > 2, labels[labels.count - 1].count == 2,
            labels[labels.count - 2].count <= 3
        {
            kept = 3
        }
        guard labels.count > kept else { return text }
        return String(Substring(text.utf8[labels[labels.count - kept].startIndex...]))
    }
}
