import EventLoop
import HTTPCore

@testable import PinfoldResolver

/// The resolver of a world: the real one without its thread. Lookups are answered when the world's
/// seed says so, in parts or not at all for a while.
final class ScriptedResolver: @unchecked Sendable {
    weak var world: SimulatedWorld!
    let resolver: Resolver
    private let core: ResolverCore
    private var names: [String: SimulatedName] = [:]
    private var asked: [(name: DomainName, hasPart: Bool)] = []

    init(now: @escaping @Sendable () -> Int64) throws {
        var options = ResolverOptions()
        options.clock = now
        options.hostsCheckMilliseconds = .max / 2
        options.maximumPending = 64
        core = try ResolverCore(options: options)
        resolver = Resolver(core: core)
    }

    func add(_ name: SimulatedName) { names[name.host] = name }

    /// Answers one lookup, or a part of it; returns false if there is none.
    @discardableResult
    func step() -> Bool {
        asked += core.takeWork().names.map { ($0, false) }
        guard !asked.isEmpty else { return false }
        let index = world.random.below(asked.count)
        let (name, hasPart) = asked[index]
        guard let known = names[name.text], !known.isDenied, !known.isLiteral else {
            world.fail("\(name.text) is looked up")
            return false
        }
        let now = core.options.clock()
        let lifetime = Int64(world.random.pick([0, 30, 3000]))
        if !hasPart, !world.isSettling, world.random.chance(15) {
            asked[index].hasPart = true
            core.publish(
                part: answer(known, isComplete: false, expiresAt: now + lifetime), of: name)
            return true
        }
        asked.remove(at: index)
        let result: ResolveResult
        if !hasPart, !world.isSettling, world.random.chance(20) {
            result = .failed(
                world.random.pick([.nxdomain, .noData, .timeout, .serverFailure, .unreachable]))
        } else {
            result = .resolved(answer(known, isComplete: true, expiresAt: now + lifetime))
        }
        world.note("answers the lookup of", known.addresses.count, asked.count)
        core.finish(name, result, expiresAt: now + lifetime, now: now)
        return true
    }

    /// Some of a name's addresses, IPv6 first, as in combined DNS answers.
    private func answer(
        _ name: SimulatedName, isComplete: Bool, expiresAt: Int64
    ) -> ResolvedAnswer {
        var chosen: [IPAddress] = []
        for address in name.addresses.map(\.address) where !chosen.contains(address) {
            if world.random.chance(75) { chosen.insert(address, at: 0) }
        }
        if chosen.isEmpty { chosen = [world.random.pick(name.addresses).address] }
        let sorted = chosen.filter { $0.family == .v6 } + chosen.filter { $0.family == .v4 }
        return ResolvedAnswer(
            addresses: sorted, source: .dns, isComplete: isComplete,
            expiresAtMilliseconds: expiresAt)
    }

    /// What is wrong when everything has ended.
    func violationAtEnd() -> String? {
        let figures = core.statistics()
        if figures.pending > 0 || figures.waiting > 0 || !asked.isEmpty {
            return "\(figures.waiting) wait for \(figures.pending) names"
        }
        return nil
    }
}
