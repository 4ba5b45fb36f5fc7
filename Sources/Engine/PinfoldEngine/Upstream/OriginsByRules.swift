import PinfoldConfiguration

/// The origins for requests to whose paths rules for the cache apply, by the origins that they are
/// for. They have no connections, and are made again when they are needed.
struct OriginsByRules {
    /// Those of one origin: one for each of its rules, once there has been such a request.
    private struct Place {
        let base: Origin
        var origins: [Origin?]
        /// What is stored by each of them; 0 as long as there is none.
        var fingerprints: [UInt64]
    }

    /// How many origins have a place.
    private static let capacity = 4096

    private var places: [Place] = []

    mutating func removeAll() { places = [] }

    /// The origin with one of the rules, existing or new.
    mutating func origin(
        of base: Origin, _ index: Int, _ rules: CacheRuleSet
    ) -> Origin {
        let place = place(of: base, rules)
        if let known = places[place].origins[index] { return known }
        let made = Origin(base, route: rules.routes[index])
        places[place].origins[index] = made
        places[place].fingerprints[index] = made.fingerprint
        return made
    }

    /// The origin under whose rules something is stored; `nil` if there is none yet.
    func origin(of base: Origin, storing fingerprint: UInt64) -> Origin? {
        guard base.ruledPlace < places.count, places[base.ruledPlace].base === base else {
            return nil
        }
        return places[base.ruledPlace].fingerprints.firstIndex(of: fingerprint).flatMap {
            places[base.ruledPlace].origins[$0]
        }
    }

    private mutating func place(of base: Origin, _ rules: CacheRuleSet) -> Int {
        if base.ruledPlace < places.count, places[base.ruledPlace].base === base {
            return base.ruledPlace
        }
        if places.count >= Self.capacity { removeAll() }
        base.ruledPlace = places.count
        places.append(
            Place(
                base: base, origins: Array(repeating: nil, count: rules.routes.count),
                fingerprints: Array(repeating: 0, count: rules.routes.count)))
        return base.ruledPlace
    }
}

extension OriginTable {
    /// The origin for requests to a path to which the rules with an index apply.
    func ruled(_ base: Origin, route index: Int, of rules: CacheRuleSet) -> Origin {
        byRules.origin(of: base, index, rules)
    }

    /// The origin by whose rules a response is stored.
    func ruled(_ base: Origin, bearing fingerprint: UInt64) -> Origin? {
        byRules.origin(of: base, storing: fingerprint)
    }
}
