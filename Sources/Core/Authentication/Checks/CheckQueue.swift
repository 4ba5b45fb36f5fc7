import HTTPCore

/// The password checks that wait or are being made: one at a time for a client network, networks in
/// turn, and a bounded number in all and of each network. Requests with the same credentials wait
/// for one check. Pure.
///
///     add ──► waiting ──► next: running ──► finished: its waiters
///                └── cancel of the last waiter: gone
package struct CheckQueue<Waiter: Sendable>: Sendable {
    /// How many checks may wait or be made.
    package static var limit: Int { 1024 }
    /// How many of them may be a network's: with a bcrypt cost of 12, which takes a quarter of a
    /// second, the last one is made within 8 seconds.
    package static var networkLimit: Int { 32 }

    /// Identifies a waiter, for ``cancel(_:)``.
    package struct Ticket: Sendable, Hashable {
        fileprivate var check: Int
        fileprivate var number: UInt64
    }

    /// The result of adding a check.
    package enum Addition: Sendable, Equatable {
        case added(Ticket)
        /// Another request's check is waited for.
        case joined(Ticket)
    }

    private struct Key: Hashable, Sendable {
        var proof: ProofDigest
        var hash: PasswordHash
        var client: IPNetwork
    }

    private struct Entry: Sendable {
        var check: PasswordCheck
        /// Milliseconds of the clock before which it is not made.
        var start: Int64
        var isRunning = false
        var waiters: [(number: UInt64, waiter: Waiter)] = []
    }

    private struct Line: Sendable {
        /// The numbers of its checks that wait, in their order.
        var waiting: [Int] = []
        var isBusy = false
    }

    private var entries: [Int: Entry] = [:]
    private var numbers: [Key: Int] = [:]
    private var lines: [IPNetwork: Line] = [:]
    /// The networks with a waiting check, the next one first.
    private var turns: [IPNetwork] = []
    private var places: PermitShares<IPNetwork>
    private var counter = 0
    private var ticketCounter: UInt64 = 0

    package init(limit: Int = CheckQueue.limit) { places = PermitShares(permits: limit) }

    /// The checks that wait or are being made.
    package var count: Int { entries.count }
    /// Whether another one of this network would be refused.
    package func isFull(for client: IPNetwork) -> Bool {
        places.taken(by: client) >= Self.networkLimit || !places.mayTake(for: client)
    }

    /// Joins a check of the same credentials that waits or is being made.
    /// - Returns: `nil` if there is none.
    package mutating func join(_ check: PasswordCheck, _ waiter: Waiter) -> Addition? {
        guard let number = numbers[key(of: check)] else { return nil }
        return .joined(append(waiter, to: number))
    }

    /// Adds a check.
    /// - Parameter start: when it may be made, in milliseconds of the clock of ``next(at:)``.
    /// - Returns: `nil` if there is no place for it.
    package mutating func add(
        _ check: PasswordCheck, notBefore start: Int64, _ waiter: Waiter
    ) -> Addition? {
        if let joined = join(check, waiter) { return joined }
        guard !isFull(for: check.client), places.take(for: check.client) else { return nil }
        counter += 1
        entries[counter] = Entry(check: check, start: start)
        numbers[key(of: check)] = counter
        lines[check.client, default: Line()].waiting.append(counter)
        if !turns.contains(check.client) { turns.append(check.client) }
        return .added(append(waiter, to: counter))
    }

    private func key(of check: PasswordCheck) -> Key {
        Key(proof: check.proof, hash: check.hash, client: check.client)
    }

    private mutating func append(_ waiter: Waiter, to number: Int) -> Ticket {
        ticketCounter += 1
        entries[number]?.waiters.append((ticketCounter, waiter))
        return Ticket(check: number, number: ticketCounter)
    }

    /// What a thread does next.
    package enum Step: Sendable {
        /// Make this check, then report it with ``finished(_:)``.
        case check(number: Int, PasswordCheck)
        /// Nothing before this time.
        case wait(until: Int64)
        /// Nothing until another check is added or finished.
        case idle
    }

    /// - Parameter now: milliseconds of a monotonic clock.
    package mutating func next(at now: Int64) -> Step {
        var earliest: Int64?
        for (turn, client) in turns.enumerated() {
            guard let line = lines[client], !line.isBusy else { continue }
            for (place, number) in line.waiting.enumerated() {
                guard let entry = entries[number] else { continue }
                guard entry.start <= now else {
                    earliest = min(earliest ?? entry.start, entry.start)
                    continue
                }
                entries[number]?.isRunning = true
                lines[client]?.isBusy = true
                lines[client]?.waiting.remove(at: place)
                // The others go first next time.
                turns.remove(at: turn)
                if line.waiting.count > 1 { turns.append(client) }
                return .check(number: number, entry.check)
            }
        }
        return earliest.map { .wait(until: $0) } ?? .idle
    }

    /// A check has been made. Returns those who wait for its result.
    package mutating func finished(_ number: Int) -> [Waiter] {
        guard let entry = remove(number) else { return [] }
        lines[entry.check.client]?.isBusy = false
        forgetLine(of: entry.check.client)
        return entry.waiters.map(\.waiter)
    }

    /// Somebody waits no longer. A check that nobody waits for is not made, unless it has begun.
    /// - Returns: the check if it is gone.
    package mutating func cancel(_ ticket: Ticket) -> PasswordCheck? {
        guard let entry = entries[ticket.check] else { return nil }
        let left = entry.waiters.filter { $0.number != ticket.number }
        entries[ticket.check]?.waiters = left
        guard left.isEmpty, !entry.isRunning else { return nil }
        _ = remove(ticket.check)
        let client = entry.check.client
        lines[client]?.waiting.removeAll { $0 == ticket.check }
        if lines[client]?.waiting.isEmpty ?? true { turns.removeAll { $0 == client } }
        forgetLine(of: client)
        return entry.check
    }

    /// Forgets all that wait. Returns everyone who waits.
    package mutating func removeAll() -> [Waiter] {
        let waiters = entries.values.flatMap { $0.waiters.map(\.waiter) }
        self = CheckQueue(limit: places.permits)
        return waiters
    }

    private mutating func remove(_ number: Int) -> Entry? {
        guard let entry = entries.removeValue(forKey: number) else { return nil }
        numbers[key(of: entry.check)] = nil
        places.release(for: entry.check.client)
        return entry
    }

    private mutating func forgetLine(of client: IPNetwork) {
        if let line = lines[client], line.waiting.isEmpty, !line.isBusy { lines[client] = nil }
    }
}

/// A password to be checked.
package struct PasswordCheck: Sendable {
    /// The digest of the credentials under the process's key.
    package let proof: ProofDigest
    /// The network of the client that has sent them.
    package let client: IPNetwork
    package let user: String
    package let password: [UInt8]
    /// What it is compared with.
    package let hash: PasswordHash
    /// Whether there is no such user: the check takes its time, and its result is no.
    package let isDecoy: Bool

    package init(
        proof: ProofDigest, client: IPNetwork, _ credentials: UserPassword, hash: PasswordHash,
        isDecoy: Bool
    ) {
        self.proof = proof
        self.client = client
        user = credentials.user
        password = credentials.password
        self.hash = hash
        self.isDecoy = isDecoy
    }
}

/// The result of a password check.
package enum CheckOutcome: Sendable, Equatable, CaseIterable {
    case matches
    case differs
    /// It could not be made: no memory, or no thread.
    case impossible
}
