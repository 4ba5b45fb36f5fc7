/// Whose reports give way where there is no room for all: those of whoever has most. So a server
/// that takes none pushes out its own reports, and not those that others are to get.
enum ReportShares {
    /// One report, or what may be one.
    struct Holding {
        /// Whose share it is; nil: nobody knows.
        var holder: String?
        /// How much of the room it takes; 0: none, and its going would be of no use.
        var weight: Int
        /// When it is too old: the one that is first is the oldest.
        var expires: Int64
        /// Whether it can go.
        var mayGo: Bool
    }

    /// The oldest report of the holder that has most, of those that have one that can go.
    ///
    /// - Parameter newcomer: whose goes first where several have as much.
    /// - Returns: its index; nil: none can go.
    static func next(toGo holdings: [Holding], preferring newcomer: String?) -> Int? {
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
            if one == newcomer || other == newcomer { return one == newcomer }
            return (holdings[index].expires, index) < (holdings[otherIndex].expires, otherIndex)
        }
        return oldest.min { precedes($0.key, $0.value, $1.key, $1.value) }?.value
    }
}
