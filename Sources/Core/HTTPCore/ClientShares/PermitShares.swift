/// Permits that are taken for a while, shared so that no single holder gets them all: while less
/// than half of them are taken, anyone may take one; after that, a holder with a quarter of all
/// permits gets no more. Pure.
public struct PermitShares<Holder: Hashable> {
    /// The number of permits.
    public let permits: Int
    /// How many permits are taken.
    public private(set) var taken = 0
    private var holders: [Holder: Int] = [:]

    public init(permits: Int) { self.permits = permits }

    /// Whether all permits are taken.
    public var isFull: Bool { taken >= permits }
    private var areScarce: Bool { taken >= max(1, permits / 2) }

    /// How many permits one holder has taken.
    public func taken(by holder: Holder) -> Int { holders[holder, default: 0] }

    /// Whether the holder may take a permit.
    ///
    /// - Parameter holder: `nil` if the permit belongs to no holder; such permits are not limited
    ///   by a share.
    public func mayTake(for holder: Holder?) -> Bool {
        guard !isFull else { return false }
        guard areScarce, let holder else { return true }
        return taken(by: holder) < max(1, permits / 4)
    }

    /// Takes a permit; returns `false` if none may be taken.
    public mutating func take(for holder: Holder?) -> Bool {
        guard mayTake(for: holder) else { return false }
        taken += 1
        if let holder { holders[holder, default: 0] += 1 }
        return true
    }

    /// Returns a permit that was taken for this holder.
    public mutating func release(for holder: Holder?) {
        taken -= 1
        guard let holder, let count = holders[holder] else { return }
        holders[holder] = count > 1 ? count - 1 : nil
    }

    /// Returns all permits.
    public mutating func removeAll() { self = PermitShares(permits: permits) }
}

extension PermitShares: Sendable where Holder: Sendable {}
