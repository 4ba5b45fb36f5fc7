import HTTPCore

/// How long the next check of a user's password from a client network has to wait, after failures
/// for the same user from the same network. A user's failures from elsewhere slow nobody.
///
/// An attempt that waits counts as failed from its beginning until it succeeds: attempts at the
/// same time get their turns one behind the other. One that cannot wait, such as a signature that
/// is verified at once, counts when it has failed. Pure.
package struct FailureDelays: Sendable {
    /// The failures that have no consequence.
    package static let free = 3
    /// The first delay; each further failure doubles it, up to the last.
    package static let milliseconds: ClosedRange<Int64> = 1000...30_000
    /// After this long without an attempt, the failures are forgotten.
    package static let forgottenAfter: Int64 = 900_000
    /// How many pairs of network and user are remembered.
    package static let limit = 10_000

    private struct Pair: Hashable, Sendable {
        var client: IPNetwork
        var user: String
    }

    private struct Record: Sendable {
        var failures: Int
        /// The earliest time of the next check.
        var next: Int64
        /// When the last attempt began.
        var last: Int64
    }

    private var table: ShareTable<Pair, Record>
    private let free: Int

    /// - Parameter free: the failures that have no consequence.
    package init(limit: Int = FailureDelays.limit, free: Int = FailureDelays.free) {
        table = ShareTable(limit: limit)
        self.free = free
    }

    /// The delay after this many failures.
    package func delay(after failures: Int) -> Int64 {
        let counted = failures - free
        guard counted > 0 else { return 0 }
        let first = Self.milliseconds.lowerBound
        return counted > 16
            ? Self.milliseconds.upperBound
            : min(Self.milliseconds.upperBound, first << Int64(counted - 1))
    }

    /// When the check of an attempt begins.
    package enum Start: Sendable, Equatable {
        /// At this time, which may be now.
        case at(Int64)
        /// Not at all: others wait before it, for longer than the longest delay. An attempt at this
        /// time begins at once.
        case refused(until: Int64)
    }

    /// Begins an attempt.
    /// - Parameter now: milliseconds of a monotonic clock.
    package mutating func begin(_ client: IPNetwork, _ user: String, at now: Int64) -> Start {
        let pair = Pair(client: client, user: user)
        var record = table.use(pair) ?? Record(failures: 0, next: now, last: now)
        if now - record.last >= Self.forgottenAfter {
            record = Record(failures: 0, next: now, last: now)
        }
        let start = max(now, record.next)
        guard start - now <= Self.milliseconds.upperBound else { return .refused(until: start) }
        record.failures += 1
        record.next = start + delay(after: record.failures)
        record.last = now
        table.set(record, for: pair, of: client)
        return .at(start)
    }

    /// How long an attempt that cannot wait must not be made, in milliseconds; 0: now.
    package func pause(_ client: IPNetwork, _ user: String, at now: Int64) -> Int64 {
        guard let record = table.value(of: Pair(client: client, user: user)),
            now - record.last < Self.forgottenAfter
        else { return 0 }
        return max(0, record.next - now)
    }

    /// An attempt that could not wait has failed.
    package mutating func failed(_ client: IPNetwork, _ user: String, at now: Int64) {
        let pair = Pair(client: client, user: user)
        var record = table.use(pair) ?? Record(failures: 0, next: now, last: now)
        if now - record.last >= Self.forgottenAfter {
            record = Record(failures: 0, next: now, last: now)
        }
        record.failures += 1
        record.next = now + delay(after: record.failures)
        record.last = now
        table.set(record, for: pair, of: client)
    }

    /// The attempt has succeeded: the failures before it are forgotten.
    package mutating func succeeded(_ client: IPNetwork, _ user: String) {
        table.remove(Pair(client: client, user: user))
    }

    /// The attempt was given up before its check began. Its turn is not given to another.
    package mutating func withdrawn(_ client: IPNetwork, _ user: String) {
        let pair = Pair(client: client, user: user)
        guard var record = table.value(of: pair) else { return }
        record.failures -= 1
        // Otherwise attempts that are given up would push out the failures of others.
        guard record.failures > 0 else {
            table.remove(pair)
            return
        }
        table.update(record, for: pair, weight: 1)
    }

    package var count: Int { table.count }
}
