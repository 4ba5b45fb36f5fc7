import PinfoldEngine
import Synchronization

/// The places that a client's connection takes of the limits.
struct ClientPlaces: OptionSet {
    let rawValue: UInt8
    /// Among all connections (`limits.connections`).
    static let process = ClientPlaces(rawValue: 1)
    /// Among those of its client (`limits.perClient.connections`).
    static let client = ClientPlaces(rawValue: 2)
}

/// Which connections are to make room for others. The second kind is asked for only when there are
/// none of the first.
package enum RoomStage: Sendable {
    /// Idle: nothing of a request has arrived.
    case idle
    /// Those that stand still: with a head that does not arrive, or answered and not yet closed.
    case stalled
}

/// One worker's request to the others for places of client connections, made when a limit is
/// reached and none of its own makes room.
///
/// Whoever has such connections closes those that have been so the longest and hands their places
/// over without giving them back, so that nobody else takes them. The last one to answer tells the
/// worker that asked.
package final class RoomRequest: Sendable {
    let asker: Int
    /// Whose connections are asked for, with their places under the limit of the client too; nil:
    /// anybody's.
    let client: ClientAccount?
    let stage: RoomStage
    /// How many places were asked for.
    let wantedCount: Int
    private let wanted: Atomic<Int>
    private let unanswered: Atomic<Int>
    private let granted = Atomic<Int>(0)

    /// - Parameters:
    ///   - wanted: how many places.
    ///   - others: how many workers are asked.
    init(
        asker: Int, client: ClientAccount? = nil, stage: RoomStage = .idle, wanted: Int,
        others: Int
    ) {
        self.asker = asker
        self.client = client
        self.stage = stage
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
