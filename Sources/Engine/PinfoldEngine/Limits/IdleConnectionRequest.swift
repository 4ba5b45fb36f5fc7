import Synchronization

/// One worker's request to the others to close an idle connection that uses a permit of a limit.
/// The last one to answer notifies the worker that asked.
package final class IdleConnectionRequest: Sendable {
    let limit: SharedLimit
    let requester: Int
    private let unanswered: Atomic<Int>

    init(_ limit: SharedLimit, requester: Int, others: Int) {
        self.limit = limit
        self.requester = requester
        unanswered = Atomic(others)
    }

    /// A worker has done what it can. Returns true if it was the last one.
    func answer() -> Bool {
        unanswered.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }
}
