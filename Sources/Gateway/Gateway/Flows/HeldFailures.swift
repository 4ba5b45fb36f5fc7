import HTTPCore

/// How many refused and failed exchanges a worker holds in a second while nobody looks: each takes
/// an allocation and a lock that all workers share, and a flood of requests that are refused must
/// cost no more than refusing them.
///
/// A client network has half of them at most, so that one that floods does not hide what happens
/// to the others.
struct HeldFailures {
    /// How many are held in a second.
    static let perSecond = 50
    /// How many of them may be of one client network. Networks are told apart by a part of their
    /// hash: some share these.
    static let perNetwork = 25
    private static let networks = 64

    /// Which second it is, of the monotonic clock.
    private var second = Int64.min
    private var count = 0
    private var counts = InlineArray<64, UInt8>(repeating: 0)

    /// Whether another one is held, which is counted.
    /// - Parameters:
    ///   - network: its client's; asked for only if there is room for any.
    ///   - now: of the monotonic clock, in milliseconds.
    mutating func takes(_ network: @autoclosure () -> IPNetwork, at now: Int64) -> Bool {
        if now / 1000 != second {
            second = now / 1000
            count = 0
            counts = InlineArray(repeating: 0)
        }
        guard count < Self.perSecond else { return false }
        let place = network().hashValue & (Self.networks - 1)
        guard counts[place] < Self.perNetwork else { return false }
        counts[place] += 1
        count += 1
        return true
    }
}
