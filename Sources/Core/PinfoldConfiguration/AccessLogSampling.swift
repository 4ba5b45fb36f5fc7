/// Which exchanges have a line in the access log: all, except where a rule says that only a share
/// of them has.
package struct AccessLogSampling: Sendable, Equatable {
    /// Which exchanges a rule is for, by how they ended.
    package enum Outcome: String, Sendable, Equatable, CaseIterable {
        /// Those that were served. What the gateway refused, or what failed, is never left out
        /// unless somebody says so.
        case none
        /// Those that were refused, failed or were cut off.
        case any
    }

    /// What becomes of the exchanges that fulfil its conditions.
    package struct Rule: Sendable, Equatable {
        /// The statuses, one of which was sent; empty for any, and for none at all.
        package var statuses: [ClosedRange<UInt16>] = []
        /// How long it must have taken, and longer; `nil` for any time.
        package var longerThanMilliseconds: Int64?
        /// Whether there is a reason in their lines.
        package var reason = Outcome.none
        /// How many of them have a line, in millionths.
        package var shareMillionths = AccessLogSampling.whole

        /// Creates a rule for everything that was served, which leaves nothing out.
        package init() {}

        /// Whether every exchange that fulfils the conditions of another rule fulfils these, as far
        /// as that is obvious.
        package func covers(_ other: Rule) -> Bool {
            guard reason == other.reason else { return false }
            if let longer = longerThanMilliseconds {
                guard let others = other.longerThanMilliseconds, others >= longer else {
                    return false
                }
            }
            return statuses.isEmpty
                || !other.statuses.isEmpty
                    && other.statuses.allSatisfy { inner in
                        statuses.contains {
                            $0.lowerBound <= inner.lowerBound && $0.upperBound >= inner.upperBound
                        }
                    }
        }
    }

    /// A share in millionths that stands for all.
    package static let whole = 1_000_000
    /// The maximum number of rules: each of them may be looked at for each exchange.
    package static let maximumRules = 32

    /// The first whose conditions are fulfilled decides.
    package var rules: [Rule]

    package init(rules: [Rule] = []) { self.rules = rules }

    /// The share of exchanges like this one that have a line, in millionths.
    package func share(
        status: UInt16, durationMicroseconds: UInt64, hasReason: Bool
    ) -> Int {
        let rule = rules.first { rule in
            guard (rule.reason == .any) == hasReason else { return false }
            if let longer = rule.longerThanMilliseconds,
                durationMicroseconds <= UInt64(clamping: longer) &* 1_000
            {
                return false
            }
            return rule.statuses.isEmpty || rule.statuses.contains { $0.contains(status) }
        }
        return rule?.shareMillionths ?? Self.whole
    }

    /// Whether an exchange belongs to a share. It depends on nothing but its number, so whoever
    /// asks again gets the same answer, and a larger share contains a smaller one.
    package static func takes(exchange number: UInt64, share millionths: Int) -> Bool {
        // The finalizer of SplitMix64: consecutive numbers become unrelated ones.
        var mixed = number &+ 0x9e37_79b9_7f4a_7c15
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        mixed ^= mixed >> 31
        return (mixed >> 32) &* UInt64(whole) < UInt64(clamping: millionths) << 32
    }
}
