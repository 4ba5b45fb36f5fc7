/// Whose reports are dropped when there is no space for all: those of the holder with the most. A
/// server that accepts none therefore displaces its own reports, rather than those for others.
enum ReportShares {
    /// One report, or what may be one.
    struct Holding {
        /// Whose share it belongs to, or `nil` if unknown.
        var holder: String?
        /// How much of the space it takes; 0 if none, so that dropping it would not help.
        var weight: Int
        /// When it expires: the first to expire is the oldest.
        var expires: Int64
        /// Whether it can be dropped.
        var mayGo: Bool
    }

    /// The oldest report of the holder that has the most, of those with a report that can be
    /// dropped.
    ///
    /// - Parameter incoming: whose goes first where several have as much.
    /// - Returns: its index, or `nil` if none can be dropped.
    static func next(toGo holdings: [Holding], preferring incoming: String?) -> Int? {
        var weights: [String?: Int] = [:]
        var oldest: [String?: Int] = [:]
        for (index, holding) in holdings.enumerated() where holding.weight > 0 {
            weights[holding.holder, default: 0] += holding.weight
            guard holding.mayGo else { continue }
            let before = oldest[holding.holder]
            if before.map({ holding.expires < holdings[$0].expires }) ?? true {
                oldest[holding.holder] = index
            }
        }
        func precedes(_ one: String?, _ index: Int, _ other: String?, _ otherIndex: Int) -> Bool {
            let (weight, otherWeight) = (weights[one] ?? 0, weights[other] ?? 0)
            if weight != otherWeight { return weight > otherWeight }
            if one == incoming || other == incoming { return one == incoming }
            return (holdings[index].expires, index) < (holdings[otherIndex].expires, otherIndex)
        }
        return oldest.min { precedes($0.key, $0.value, $1.key, $1.value) }?.value
    }
}
