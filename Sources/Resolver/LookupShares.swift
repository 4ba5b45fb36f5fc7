import Addressing

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

    private struct Zone: Sendable {
        var pending = 0
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
    /// Zones remembered for their time-outs.
    static let maximumZones = 1024

    private let places: Int
    private var pending = 0
    private var clients: [IPNetwork: Int] = [:]
    private var zones: [String: Zone] = [:]

    /// - Parameter places: lookups under way at once.
    init(places: Int) { self.places = places }

    private var share: Int { max(1, places / 4) }
    private var areScarce: Bool { pending >= max(1, places / 2) }

    /// Counts a lookup that begins, or says why it may not.
    mutating func begin(
        _ name: DomainName, client: IPNetwork?, nowMilliseconds now: Int64
    ) -> Result<Ticket, ResolveFailure> {
        guard pending < places else { return .failure(.overloaded) }
        let zoneName = name.zone
        var zone = zones[zoneName] ?? Zone()
        if now - zone.lastTimeout >= Self.failingMilliseconds { zone.timeouts = 0 }
        if zone.timeouts >= Self.failingTimeouts, zone.pending >= Self.failingPending {
            return .failure(.zoneLimit)
        }
        if areScarce {
            if let client, clients[client, default: 0] >= share { return .failure(.clientLimit) }
            if zone.pending >= share { return .failure(.zoneLimit) }
        }
        if zones[zoneName] == nil, zones.count >= Self.maximumZones { forgetIdleZones() }
        zone.pending += 1
        zones[zoneName] = zone
        if let client { clients[client, default: 0] += 1 }
        pending += 1
        return .success(Ticket(client: client, zone: zoneName))
    }

    /// A lookup is over.
    mutating func end(_ ticket: Ticket, timedOut: Bool, nowMilliseconds now: Int64) {
        pending -= 1
        if let client = ticket.client, let count = clients[client] {
            clients[client] = count > 1 ? count - 1 : nil
        }
        guard var zone = zones[ticket.zone] else { return }
        zone.pending -= 1
        if timedOut {
            zone.timeouts += 1
            zone.lastTimeout = now
        } else {
            zone.timeouts = 0
        }
        zones[ticket.zone] = zone.pending > 0 || zone.timeouts > 0 ? zone : nil
    }

    /// Nothing is under way any more.
    mutating func removeAll() { self = LookupShares(places: places) }

    private mutating func forgetIdleZones() {
        zones = zones.filter { $0.value.pending > 0 }
    }
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
