import HTTPCore
import Locking
import PinfoldConfiguration

/// How a client shows that it does not accept a certificate issued by the interception authority.
package enum RejectionSignal: Sendable, CaseIterable {
    /// It sent an alert.
    case alert
    /// It ended the connection without a request. Apps do that if they compare the certificate with
    /// one of their own, but so does a client that only checks whether the host is reachable.
    case close
}

/// Which clients are not shown the authority's certificates for a while because they keep rejecting
/// them. A pure value: the time is an argument, in milliseconds of a monotonic clock. Each client
/// has a share of the pairs that are kept.
struct RejectionTable {
    /// A client, as limits count clients, and the host that it requests.
    struct Pair: Hashable {
        let client: IPNetwork
        let host: String
    }

    private struct Record {
        /// When the first of the counted rejections came.
        var since: Int64
        var alerts = 0
        var closes = 0
        /// When the client will be shown a certificate again; `nil` if it is shown one.
        var end: Int64?
    }

    /// The most pairs that are kept, about 200 bytes each.
    static let limit = 4096

    private let rules: RejectionRules
    private var records: ShareTable<Pair, Record>

    init(_ rules: RejectionRules, limit: Int = Self.limit) {
        self.rules = rules
        records = ShareTable(limit: limit)
    }

    var count: Int { records.count }

    /// Whether the client is shown no certificate for the host at this time.
    mutating func isGivenUp(_ pair: Pair, at now: Int64) -> Bool {
        guard let end = records.use(pair)?.end else { return false }
        guard end <= now else { return true }
        records.remove(pair)
        return false
    }

    /// Counts a rejection. Returns true if it was one too many, and the pair is given up from now
    /// on.
    mutating func note(_ signal: RejectionSignal, by pair: Pair, at now: Int64) -> Bool {
        let limit = signal == .alert ? rules.alerts : rules.closes
        guard limit > 0, !isGivenUp(pair, at: now) else { return false }
        var record = Record(since: now)
        if let known = records.use(pair), now - known.since < rules.windowMilliseconds {
            record = known
        }
        switch signal {
        case .alert: record.alerts += 1
        case .close: record.closes += 1
        }
        let isTooMany = (signal == .alert ? record.alerts : record.closes) >= limit
        if isTooMany { record.end = now + rules.periodMilliseconds }
        records.set(record, for: pair, of: pair.client)
        return isTooMany
    }

    /// The client has sent a request for the host inside a tunnel: it, or another at its address,
    /// accepts the authority.
    mutating func accepted(_ pair: Pair) { records.remove(pair) }
}

/// The rejections of all workers under one configuration.
package final class RejectionLedger: Sendable {
    private let table: Locked<RejectionTable>

    init(_ rules: RejectionRules) { table = Locked(RejectionTable(rules)) }

    /// Whether the client is shown no certificate for the host at this time.
    func isGivenUp(_ client: IPNetwork, host: String, at now: Int64) -> Bool {
        table.withLock { $0.isGivenUp(.init(client: client, host: host), at: now) }
    }

    /// Counts a rejection. Returns true if it was one too many, and the pair is given up from now
    /// on.
    package func note(
        _ signal: RejectionSignal, by client: IPNetwork, host: String, at now: Int64
    ) -> Bool {
        table.withLock { $0.note(signal, by: .init(client: client, host: host), at: now) }
    }

    /// The client has sent a request for the host inside a tunnel.
    package func accepted(_ client: IPNetwork, host: String) {
        table.withLock { $0.accepted(.init(client: client, host: host)) }
    }
}
