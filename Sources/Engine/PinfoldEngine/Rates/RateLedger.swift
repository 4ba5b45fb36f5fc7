import AccessPolicy
import Clocks
import EventLoop
import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldMetrics

/// An exchange that waits for its turn.
struct RateTurn: Sendable {
    /// The index of its environment.
    let worker: Int
    let token: Token
    /// The number of the exchange, as its object may be used for another one.
    let ticket: UInt64
}

/// What one of those has used by whom a rule counts, over all workers.
final class RateAccount: Sendable {
    let state = Locked(RateState<RateTurn>())
}

/// What has been used of the rates of rules, over all workers and configurations.
package final class RateLedger: Sendable {
    private let table = Locked(RateTable<RateAccount>())

    package init() {}

    /// How many accounts there are.
    var count: Int { table.withLock { $0.count } }

    /// The account of a key, known or new.
    /// - Parameter now: in nanoseconds of the monotonic clock.
    func account(_ key: RateKey, of client: IPNetwork, at now: Int64) -> RateAccount {
        table.withLock { table in
            var found: RateMoment?
            return table.account(
                key, of: client, at: now, make: { RateAccount() },
                isAtRest: { account in
                    let moment = found ?? .withDay(at: now)
                    found = moment
                    return account.state.withLock { $0.isAtRest(moment) }
                })
        }
    }
}

extension RateMoment {
    /// The present with its day.
    /// - Parameter now: in nanoseconds of the monotonic clock.
    fileprivate static func withDay(at now: Int64) -> RateMoment {
        let (day, secondsLeft) = Clock.localDay(at: Clock.wallSeconds())
        return RateMoment(now: now, day: day, secondsLeft: secondsLeft)
    }
}

/// What one exchange uses of the rates of one rule.
final class RateUse {
    let account: RateAccount
    let limits: RateLimits
    /// The name of the rule.
    let rule: String
    let client: IPNetwork
    private let counts: EventCounts<RuleEvent>
    private let monotonicNanoseconds: () -> Int64
    /// Whether it is counted as an exchange.
    private(set) var isAdmitted = false
    private var isPaced = false

    init(
        _ account: RateAccount, _ limits: RateLimits, rule: String,
        _ counts: EventCounts<RuleEvent>, client: IPNetwork, time: TimeSource
    ) {
        self.account = account
        self.limits = limits
        self.rule = rule
        self.counts = counts
        monotonicNanoseconds = time.monotonicNanoseconds
        self.client = client
    }

    /// The present, as these limits need it.
    var moment: RateMoment {
        let now = monotonicNanoseconds()
        return limits.day == nil ? RateMoment(now: now) : .withDay(at: now)
    }

    /// A request asks to proceed.
    func ask(_ turn: RateTurn, mayWait: Bool) -> RateState<RateTurn>.Admission {
        let moment = moment
        let admission = account.state.withLock { state in
            state.ask(
                limits, from: client, ticket: turn.ticket, turn, mayWait: mayWait, moment)
        }
        switch admission {
        case .admitted: isAdmitted = true
        case .waits: counts.add(to: .delayed)
        case .refused: counts.add(to: .refused)
        }
        return admission
    }

    /// It has waited, and its turn has come.
    func admitted() { isAdmitted = true }

    /// It has waited in vain.
    func gaveUp() { counts.add(to: .refused) }

    /// Its bytes have to wait; counted once.
    func paced() {
        guard !isPaced else { return }
        isPaced = true
        counts.add(to: .paced)
    }

    /// The bytes of the day have been used up while they passed.
    func exceeded() { counts.add(to: .refused) }

    /// Counts bytes of an exchange that only reports.
    /// - Parameter began: when it began, in microseconds of the monotonic clock.
    func meter(_ lane: RateLane, bytes: UInt64, since began: Int64) {
        guard limits.counts(lane) else { return }
        let (bytes, moment) = (Int(clamping: bytes), moment)
        let isExceeded = account.state.withLock {
            $0.meter(lane, limits, bytes: bytes, since: began * 1000, moment)
        }
        if isExceeded { paced() }
    }

    /// The exchange has ended. Returns those whose turn has come, and whoever else is to look.
    func end() -> (ready: [RateTurn], looks: RateTurn?) {
        guard isAdmitted else { return ([], nil) }
        isAdmitted = false
        let moment = moment
        return account.state.withLock { state in
            state.end(from: client)
            return Self.advance(&state, limits, moment)
        }
    }

    /// It waits no longer. Returns the same.
    func leave(_ ticket: UInt64) -> (ready: [RateTurn], looks: RateTurn?) {
        let moment = moment
        return account.state.withLock { state in
            // Otherwise its turn has come already, and the message is on its way.
            if !state.leave(limits, from: client, ticket: ticket) { state.end(from: client) }
            return Self.advance(&state, limits, moment)
        }
    }

    private static func advance(
        _ state: inout RateState<RateTurn>, _ limits: RateLimits, _ moment: RateMoment
    ) -> (ready: [RateTurn], looks: RateTurn?) {
        guard state.waitingCount > 0 else { return ([], nil) }
        return (state.advance(limits, moment).ready, state.next)
    }

    /// Looks whose turn has come.
    func advance() -> RateState<RateTurn>.Turns {
        let moment = moment
        return account.state.withLock { $0.advance(limits, moment) }
    }
}

/// The refusal of a request because of a rule's rate.
package final class RateExcess: Sendable {
    /// The name of the rule.
    package let rule: String
    package let reason: RateReason

    init(rule: String, _ reason: RateReason) {
        self.rule = rule
        self.reason = reason
    }
}
