/// The origins for requests to whose paths rules for the cache apply, by the origins that they are
/// for. They have no connections, and are made again when they are needed.
struct OriginsByRules {
    /// Those of one origin: one for each of its rules, once there has been such a request.
    final class Routes {
        let base: Origin
        fileprivate let rules: CacheRuleSet
        private var origins: [Origin?]
        /// What is stored by each of them; 0 as long as there is none.
        private var fingerprints: [UInt64]

        fileprivate init(of base: Origin, _ rules: CacheRuleSet) {
            self.base = base
            self.rules = rules
            origins = Array(repeating: nil, count: rules.routes.count)
            fingerprints = Array(repeating: 0, count: rules.routes.count)
        }

        /// The origin with one of the rules, existing or new.
        @inline(__always)
        func origin(_ index: Int) -> Origin { origins[index] ?? make(index) }

        @inline(never)
        private func make(_ index: Int) -> Origin {
            let made = Origin(base, route: rules.routes[index])
            origins[index] = made
            fingerprints[index] = made.fingerprint
            return made
        }

        /// The origin under whose rules something is stored; `nil` if there is none yet.
        func origin(storing fingerprint: UInt64) -> Origin? {
            for index in fingerprints.indices where fingerprints[index] == fingerprint {
                return origins[index]
            }
            return nil
        }
    }

    /// How many origins may have some.
    private static let capacity = 4096

    /// Each is known to its origin, for as long as it is here.
    private var all: [Routes] = []

    mutating func removeAll() {
        for routes in all { routes.base.byRules = nil }
        all = []
    }

    /// Those of an origin, existing or new.
    mutating func routes(of base: Origin, _ rules: CacheRuleSet) -> Routes {
        if all.count >= Self.capacity { removeAll() }
        let made = Routes(of: base, rules)
        all.append(made)
        base.byRules = made
        return made
    }
}

extension OriginTable {
    /// The origin for requests to a path to which the rules with an index apply.
    @inline(__always)
    func ruled(_ base: Origin, route index: Int, of rules: CacheRuleSet) -> Origin {
        (base.byRules ?? byRules.routes(of: base, rules)).origin(index)
    }
}
