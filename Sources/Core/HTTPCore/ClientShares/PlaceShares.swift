/// Places that are taken for a while, so that one holder does not have them all: while less than
/// half of them are taken, anybody may take one; from then on, whoever has a quarter of all of them
/// gets no more. Pure.
package struct PlaceShares<Holder: Hashable> {
    /// How many there are.
    package let places: Int
    /// How many are taken.
    package private(set) var taken = 0
    private var holders: [Holder: Int] = [:]

    package init(places: Int) { self.places = places }

    /// All are taken.
    package var isFull: Bool { taken >= places }
    private var areScarce: Bool { taken >= max(1, places / 2) }

    /// How many of them one holder has taken.
    package func taken(by holder: Holder) -> Int { holders[holder, default: 0] }

    /// Whether there is a place.
    ///
    /// - Parameter holder: nil stands for nobody, and has no share that could be used up.
    package func mayTake(for holder: Holder?) -> Bool {
        guard !isFull else { return false }
        guard areScarce, let holder else { return true }
        return taken(by: holder) < max(1, places / 4)
    }

    /// Takes a place; false: there is none.
    package mutating func take(for holder: Holder?) -> Bool {
        guard mayTake(for: holder) else { return false }
        taken += 1
        if let holder { holders[holder, default: 0] += 1 }
        return true
    }

    /// Gives a place back that was taken for the holder.
    package mutating func giveBack(for holder: Holder?) {
        taken -= 1
        guard let holder, let count = holders[holder] else { return }
        holders[holder] = count > 1 ? count - 1 : nil
    }

    /// Nothing is taken any more.
    package mutating func removeAll() { self = PlaceShares(places: places) }
}

extension PlaceShares: Sendable where Holder: Sendable {}
