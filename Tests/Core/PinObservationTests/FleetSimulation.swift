import HTTPCore
import Trust

@testable import PinObservation

/// A year of a fleet of servers, as a gateway would see it: certificates are renewed every 47 days,
/// some with the key they had, some by changing intermediates; some servers change their authority;
/// one is attacked. One seed decides everything.
struct FleetSimulation {
    /// How pins are made.
    enum Policy: String, CaseIterable {
        case leafByHand = "leaf, by hand"
        case chainByHand = "leaf and issuer, as `pinfold pin` prints"
        case proposedOnce = "proposed once"
        case proposedMonthly = "proposed, and again every 30 days"
    }

    /// What became of a policy.
    struct Outcome: Equatable {
        var pinned = 0
        /// Changes of a server after which the pins refused it.
        var outages = 0
        /// Servers that had one.
        var servers = 0
        var attackRefused = false
        /// Whether a key of the attacker's was ever pinned.
        var pinsAttacker = false
    }

    /// The result of a year.
    struct Result: Equatable {
        var outcomes: [Policy: Outcome] = [:]
        /// What was proposed on the first day of pins: leaf and issuer, issuers, and refusals.
        var withLeaf = 0
        var withIssuers = 0
        var refused = 0
        /// New keys that were told of, by whether their issuer was known.
        var newKeysOfKnownIssuers = 0
        var newKeysOfNewIssuers = 0
        /// Of those, the changes of authority, and the attack.
        var changesOfAuthority = 0
        var attackTold = false
    }

    private enum Keys { case kept, renewed }
    private enum Issuers { case one, changing }

    private struct Server {
        var name: ObservedName
        var keys: Keys
        var issuers: Issuers
        /// The day of its first renewal.
        var firstRenewal: Int
        /// When it changes its authority; `nil` if never.
        var change: Int?
        var host: ObservedHost
    }

    static let days = 365
    static let renewalDays = 47
    /// When the pins are made.
    static let pinDay = 60
    /// The attack: the server, and the days of it.
    static let attacked = 17
    static let attackDays = 200..<203

    private var random: UInt64
    private var servers: [Server] = []

    init(servers count: Int, seed: UInt64) {
        random = seed
        for index in 0..<count {
            let name = ObservedName(host: "s\(index).example.com", port: 443)
            servers.append(
                Server(
                    name: name, keys: next(10) < 3 ? .kept : .renewed,
                    issuers: next(10) < 5 ? .one : .changing, firstRenewal: next(Self.renewalDays),
                    change: next(10) == 0 ? 90 + next(240) : nil,
                    host: ObservedHost(name: name, time: 0)))
        }
    }

    /// SplitMix64.
    private mutating func next(_ bound: Int) -> Int {
        random &+= 0x9e37_79b9_7f4a_7c15
        var value = random
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return Int((value ^ (value >> 31)) % UInt64(bound))
    }

    /// The certificate of a server on a day.
    private func certificate(of index: Int, on today: Int) -> Sighting {
        let server = servers[index]
        let hasChanged = server.change.map { today >= $0 } ?? false
        var renewal = (today + Self.renewalDays - server.firstRenewal) / Self.renewalDays
        // A change of the authority is a renewal out of turn.
        if hasChanged { renewal += 100 }
        let authority = hasChanged ? (index + 1) % 5 : index % 5
        let number = server.issuers == .one ? 0 : (renewal * 7 + index * 3) % 4
        let key = server.keys == .kept ? "k\(index)" : "k\(index)-\(renewal)"
        return sighting(
            "\(index)-\(renewal)", key: key,
            below: [["a\(authority)i\(number)", "a\(authority)root"]],
            at: Int64(today) * day, from: address, of: server.name,
            notAfter: Int64(today + Self.renewalDays) * day)
    }

    private func attack(on today: Int) -> Sighting {
        sighting(
            "evil", below: [["evil intermediate", "evil root"]], at: Int64(today) * day + 3600,
            from: otherAddress, of: servers[Self.attacked].name)
    }

    private static let attackerKeys: Set = [
        key("evil"), key("evil intermediate"), key("evil root"),
    ]

    /// The pins of a policy for a server on a day; `nil` to leave it as it is.
    private func pins(
        _ policy: Policy, of index: Int, showing seen: Sighting, on today: Int
    ) -> Set<SHA256Digest>? {
        switch policy {
        case .leafByHand:
            return today == Self.pinDay ? [seen.leaf.key] : nil
        case .chainByHand:
            return today == Self.pinDay
                ? Set([seen.leaf.key] + seen.paths[0].prefix(1).map(\.key)) : nil
        case .proposedOnce, .proposedMonthly:
            guard today == Self.pinDay || policy == .proposedMonthly,
                (today - Self.pinDay) % 30 == 0,
                let proposal = try? servers[index].host.proposal(
                    ProposalOptions(now: Int64(today) * day))
            else { return nil }
            return Set(proposal.keys.map(\.key))
        }
    }

    /// Lets the year pass.
    mutating func run() -> Result {
        var result = Result()
        var pins = [Policy: [Int: Set<SHA256Digest>]]()
        var failed = [Policy: Set<Int>]()
        for policy in Policy.allCases { result.outcomes[policy] = Outcome() }
        for today in 0..<Self.days {
            for index in servers.indices {
                let seen = certificate(of: index, on: today)
                note(seen, index, today, &result)
                if index == Self.attacked, Self.attackDays.contains(today) {
                    note(attack(on: today), index, today, &result)
                }
                if today == Self.pinDay { propose(index, today, &result) }
                for policy in Policy.allCases {
                    if let made = self.pins(policy, of: index, showing: seen, on: today) {
                        pins[policy, default: [:]][index] = made
                        if !made.isDisjoint(with: Self.attackerKeys) {
                            result.outcomes[policy]?.pinsAttacker = true
                        }
                    }
                    guard let pinned = pins[policy]?[index] else { continue }
                    let shown = Set([seen.leaf.key] + seen.paths[0].map(\.key))
                    if pinned.isDisjoint(with: shown) {
                        result.outcomes[policy]?.outages += 1
                        failed[policy, default: []].insert(index)
                        // Somebody mends it, by hand: what the server shows is pinned as before.
                        pins[policy]?[index] =
                            policy == .leafByHand
                            ? [seen.leaf.key] : [seen.leaf.key, seen.paths[0][0].key]
                    }
                    if index == Self.attacked, today == Self.attackDays.lowerBound {
                        result.outcomes[policy]?.attackRefused =
                            pinned.isDisjoint(with: Self.attackerKeys)
                    }
                }
            }
        }
        for policy in Policy.allCases {
            result.outcomes[policy]?.servers = failed[policy]?.count ?? 0
            result.outcomes[policy]?.pinned = pins[policy]?.count ?? 0
        }
        return result
    }

    private mutating func note(
        _ seen: Sighting, _ index: Int, _ today: Int, _ result: inout Result
    ) {
        guard case .newKey(let isKnown)? = servers[index].host.note(seen) else { return }
        if isKnown {
            result.newKeysOfKnownIssuers += 1
        } else {
            result.newKeysOfNewIssuers += 1
            if servers[index].change == today { result.changesOfAuthority += 1 }
            if seen.leaf.subject == "CN=evil" { result.attackTold = true }
        }
    }

    private func propose(_ index: Int, _ today: Int, _ result: inout Result) {
        let options = ProposalOptions(now: Int64(today) * day)
        guard let proposal = try? servers[index].host.proposal(options) else {
            result.refused += 1
            return
        }
        if proposal.keys.contains(where: { $0.role == .leaf }) {
            result.withLeaf += 1
        } else {
            result.withIssuers += 1
        }
    }
}
