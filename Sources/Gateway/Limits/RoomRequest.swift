import Synchronization

/// One worker's request to the others for the places of idle client connections, made when
/// `limits.connections` is reached and none of its own is idle.
///
/// Whoever has idle ones closes those that are idle the longest and hands their places over without
/// giving them back, so that nobody else takes them. The last one to answer tells the worker that
/// asked.
package final class RoomRequest: Sendable {
    let asker: Int
    /// How many places were asked for.
    let wantedCount: Int
    private let wanted: Atomic<Int>
    private let unanswered: Atomic<Int>
    private let granted = Atomic<Int>(0)

    /// - Parameters:
    ///   - wanted: how many places.
    ///   - others: how many workers are asked.
    init(asker: Int, wanted: Int, others: Int) {
        self.asker = asker
        wantedCount = wanted
        self.wanted = Atomic(wanted)
        unanswered = Atomic(others)
    }

    /// Claims one of the places that are still wanted, to be granted or given up.
    func claim() -> Bool {
        if wanted.subtract(1, ordering: .relaxed).newValue >= 0 { return true }
        giveUp()
        return false
    }

    /// There was no place for what was claimed.
    func giveUp() { wanted.add(1, ordering: .relaxed) }

    /// Hands over the place for what was claimed.
    func grant() { granted.add(1, ordering: .releasing) }

    /// A worker has done what it can. True: it was the last one.
    func answer() -> Bool {
        unanswered.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }

    /// How many places were handed over; final once all have answered.
    var grantedCount: Int { granted.load(ordering: .acquiring) }
}
