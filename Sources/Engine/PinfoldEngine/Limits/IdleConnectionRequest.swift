import Synchronization

/// One worker's question to the others whether they have an idle connection that takes a place of a
/// limit: those close one for it. The last one to answer tells the worker that asked.
package final class IdleConnectionRequest: Sendable {
    let limit: SharedLimit
    let requester: Int
    private let unanswered: Atomic<Int>

    init(_ limit: SharedLimit, requester: Int, others: Int) {
        self.limit = limit
        self.requester = requester
        unanswered = Atomic(others)
    }

    /// A worker has done what it can. True: it was the last one.
    func answer() -> Bool {
        unanswered.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }
}
