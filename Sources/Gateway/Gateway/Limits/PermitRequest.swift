import PinfoldEngine
import Synchronization

/// The permits that a client's connection holds under the limits.
struct ClientPermits: OptionSet {
    let rawValue: UInt8
    /// One of all connections (`limits.connections`).
    static let process = ClientPermits(rawValue: 1)
    /// One of its client's connections (`limits.perClient.connections`).
    static let client = ClientPermits(rawValue: 2)
}

/// Which connections make room for others. The second kind is requested only when there are none of
/// the first.
package enum EvictionStage: Sendable {
    /// Idle: nothing of a request has arrived.
    case idle
    /// Stalled: with a head that does not arrive, or answered and not yet closed.
    case stalled
}

/// One worker's request to the others for permits of client connections, made when a limit is
/// reached and none of its own connections can make room.
///
/// The other workers close those of their connections that have been in that state the longest and
/// hand their permits over without releasing them, so that no other connection takes them. The last
/// worker to respond notifies the requester.
package final class PermitRequest: Sendable {
    let requester: Int
    /// The client whose connections are requested, including their permits under the limit of the
    /// client; `nil` for any client's.
    let client: ClientAccount?
    let stage: EvictionStage
    /// The number of permits requested.
    let wantedCount: Int
    private let wanted: Atomic<Int>
    private let unanswered: Atomic<Int>
    private let granted = Atomic<Int>(0)

    /// - Parameters:
    ///   - wanted: the number of permits.
    ///   - others: the number of workers that are asked.
    init(
        requester: Int, client: ClientAccount? = nil, stage: EvictionStage = .idle, wanted: Int,
        others: Int
    ) {
        self.requester = requester
        self.client = client
        self.stage = stage
        wantedCount = wanted
        self.wanted = Atomic(wanted)
        unanswered = Atomic(others)
    }

    /// Claims one of the permits that are still wanted, to be granted or given up.
    func claim() -> Bool {
        if wanted.subtract(1, ordering: .relaxed).newValue >= 0 { return true }
        giveUp()
        return false
    }

    /// Gives up a claim for which there was no permit.
    func giveUp() { wanted.add(1, ordering: .relaxed) }

    /// Hands over the permit for a claim.
    func grant() { granted.add(1, ordering: .releasing) }

    /// Records that a worker has done what it can. Returns `true` if it was the last one.
    func answer() -> Bool {
        unanswered.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }

    /// The number of permits handed over; final once all workers have responded.
    var grantedCount: Int { granted.load(ordering: .acquiring) }
}
