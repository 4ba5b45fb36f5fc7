import AccessPolicy
import PinfoldConfiguration

@testable import PinfoldEngine

/// The rates of a simulated configuration. They differ between the policies of a world, and what
/// was used outlives a reload.
enum SimulatedRates {
    static func rules(variant: Int) -> [AccessRule] {
        var trial = RateLimits()
        trial.requests = RequestRate(count: 10, per: .second)
        var rate = RateLimits()
        rate.excess = .delay
        switch variant {
        case 0:
            rate.basis = .rule
            rate.requests = RequestRate(count: 20, per: .second)
            rate.burst = 2
        case 1: rate.exchanges = 2
        default:
            rate.basis = .rule
            rate.requests = RequestRate(count: 50, per: .second)
            rate.exchanges = 3
            rate.excess = .refuse
        }
        return [rule("trial", .report, trial), rule("rate", .allow, rate)]
    }

    private static func rule(
        _ name: String, _ action: AccessRule.Action, _ rate: RateLimits
    ) -> AccessRule {
        var rule = AccessRule()
        (rule.name, rule.action, rule.rate) = (name, action, rate)
        return rule
    }
}

// What must hold where requests are limited.
extension SimulatedWorld {
    /// Whoever waits for their turn looks for it after some time, if nobody tells them.
    func checkTurn(of exchange: Exchange) {
        guard case .delayed = exchange.state.step else { return }
        if !isRated || exchange.deadline == .max || exchange.token == .none {
            fail("\(number(of: exchange)) waits for a turn that does not come")
        }
    }

    /// No more exchanges are under way than their rate allows.
    func checkRates() {
        var underWay: [ObjectIdentifier: (count: Int, limits: Set<Int?>)] = [:]
        for case let exchange? in exchanges.map(\.exchange) {
            guard let limiting = exchange.limiting else { continue }
            for use in limiting.reported { note(use) }
            guard let use = limiting.use else { continue }
            note(use)
            guard use.isAdmitted else { continue }
            let account = ObjectIdentifier(use.account)
            underWay[account, default: (0, [])].count += 1
            underWay[account]?.limits.insert(use.limits.exchanges)
        }
        // Those that began under another policy may be more than another one allows.
        for (count, limits) in underWay.values {
            guard limits.count == 1, case let limit?? = limits.first else { continue }
            if count > limit { fail("\(count) exchanges at once, and \(limit) are allowed") }
        }
    }

    private func note(_ use: RateUse) { rateAccounts[ObjectIdentifier(use.account)] = use.account }

    /// Everything in progress has ended: nobody waits any more, and nothing counts as under way.
    func checkRatesAtEnd() {
        let later = RateMoment(now: (now + 3_600_000) * 1_000_000)
        for account in rateAccounts.values {
            let (waiting, isAtRest) = account.state.withLock {
                ($0.waitingCount, $0.isAtRest(later))
            }
            if waiting != 0 { fail("\(waiting) still wait for their turn") }
            if !isAtRest { fail("an exchange that is over is still counted for a rate") }
        }
    }
}
