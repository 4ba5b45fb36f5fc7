/// The origins for requests to whose paths rules for the cache apply, by the origins that they are
/// for. They have no connections, and are made again when they are needed.
struct OriginsByRules {
    /// Those of one origin: one for each of its rules, once there has been such a request.
    final class Routes {
        let base: Origin
        private let rules: CacheRuleSet
        private var origins: [Origin?]
        /// Where each of them may be, by the low bits of the fingerprint of what is stored by it,
        /// which differ (``CacheRuleSet/changeable``): asked for each response that is found.
        private let slots: UnsafeMutablePointer<Slot>
        private let mask: UInt64

        private struct Slot {
            /// 0 as long as there is none.
            var fingerprint: UInt64 = 0
            var origin: Unmanaged<Origin>?
        }

        fileprivate init(of base: Origin, _ rules: CacheRuleSet) {
            self.base = base
            self.rules = rules
            origins = Array(repeating: nil, count: rules.routes.count)
            var count = 16
            while count < 4 * rules.routes.count { count *= 2 }
            slots = .allocate(capacity: count)
            slots.initialize(repeating: Slot(), count: count)
            mask = UInt64(count - 1)
        }

        deinit { slots.deallocate() }

        /// The origin with one of the rules, existing or new.
        @inline(__always)
        func origin(_ index: Int) -> Origin { origins[index] ?? make(index) }

        @inline(never)
        private func make(_ index: Int) -> Origin {
            let made = Origin(base, route: rules.routes[index])
            origins[index] = made
            var place = made.fingerprint & mask
            // There are more slots than origins.
            while slots[Int(place)].origin != nil { place = (place + 1) & mask }
            slots[Int(place)] = Slot(
                fingerprint: made.fingerprint, origin: .passUnretained(made))
            return made
        }

        /// The origin under whose rules something is stored; `nil` if there is none yet.
        @inline(__always)
        func origin(storing fingerprint: UInt64) -> Origin? {
            var place = fingerprint & mask
            while let origin = slots[Int(truncatingIfNeeded: place)].origin {
                if slots[Int(truncatingIfNeeded: place)].fingerprint == fingerprint {
                    return origin.takeUnretainedValue()
                }
                place = (place &+ 1) & mask
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
