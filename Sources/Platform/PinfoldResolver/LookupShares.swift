import HTTPCore

/// Decides who may start another lookup, so that one client or one dead zone cannot take all
/// permits.
///
/// While less than half of the permits are taken, everybody may. After that, a client or zone that
/// holds a quarter of them gets no more. A zone in which lookup after lookup has timed out gets
/// only a few at a time until something in it answers.
struct LookupShares: Sendable {
    /// What a lookup is counted for.
    struct Ticket: Sendable {
        let client: IPNetwork?
        let zone: String
    }

    /// The record of a zone in which lookups time out.
    private struct Failures: Sendable {
        /// Lookups that have timed out since the last one that was answered.
        var timeouts = 0
        var lastTimeout: Int64 = 0
    }

    /// The number of consecutive timeouts after which a zone counts as failing.
    static let failingTimeouts = 8
    /// The maximum number of lookups under way in a failing zone.
    static let failingPending = 4
    /// A zone without another timeout for this long no longer counts as failing.
    static let failingMilliseconds: Int64 = 10_000
    /// The maximum number of zones whose timeouts are remembered; each client has a share of them.
    static let maximumZones = 1024

    private var clients: PermitShares<IPNetwork>
    private var zones: PermitShares<String>
    private var failures = ShareTable<String, Failures>(limit: Self.maximumZones)

    /// - Parameter permits: lookups under way at once.
    init(permits: Int) {
        clients = PermitShares(permits: permits)
        zones = PermitShares(permits: permits)
    }

    /// Counts a lookup that begins, or returns why it may not.
    mutating func begin(
        _ name: DomainName, client: IPNetwork?, nowMilliseconds now: Int64
    ) -> Result<Ticket, ResolveError> {
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

    /// Called when a lookup is over.
    mutating func end(_ ticket: Ticket, timedOut: Bool, nowMilliseconds now: Int64) {
        clients.release(for: ticket.client)
        zones.release(for: ticket.zone)
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
    mutating func removeAll() { self = LookupShares(permits: clients.permits) }
}

extension DomainName {
    /// The part of the name that stands for the operator of its servers: the last two labels, or
    /// three below a country's registry (`co.uk`, `com.au`).
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
