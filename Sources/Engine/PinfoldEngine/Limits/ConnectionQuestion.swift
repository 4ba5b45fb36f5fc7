import Synchronization

/// One worker's question to the others whether they have an idle connection that takes a place of a
/// limit: those close one for it. The last one to answer tells the worker that asked.
package final class ConnectionQuestion: Sendable {
    let limit: SharedLimit
    let asker: Int
    private let unanswered: Atomic<Int>

    init(_ limit: SharedLimit, asker: Int, others: Int) {
        self.limit = limit
        self.asker = asker
        unanswered = Atomic(others)
    }

    /// A worker has done what it can. True: it was the last one.
    func answer() -> Bool {
        unanswered.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
    }
}
