/// The requests under way that hold the places which others wait for.
struct QueueHolders {
    /// What makes the others wait.
    let limit: QueueTimeout.Limit
    /// Of the request that waits.
    let origin: RequestOrigin
    /// When one of them last came nearer to its end, in the loop's milliseconds.
    private(set) var advancedAt: Int64 = 0
    private var (unread, suspended, unanswered, unending) = (0, 0, 0, 0)
    private var counts: [RequestOrigin: Int] = [:]

    init(limit: QueueTimeout.Limit, origin: RequestOrigin) {
        (self.limit, self.origin) = (limit, origin)
    }

    /// Adds a request under way, if it holds one of these places.
    mutating func add(_ transfer: Transfer) {
        switch limit {
        case .requests: break
        case .requestsPerOrigin, .handshakes:
            guard transfer.order.origin == origin else { return }
        }
        advancedAt = max(advancedAt, transfer.advancedAt)
        counts[transfer.order.origin, default: 0] += 1
        guard !transfer.isSuspended else {
            suspended += 1
            return
        }
        switch transfer.channel.reading {
        case .unanswered: unanswered += 1
        case .unread: unread += 1
        case .caughtUp: unending += 1
        }
    }

    /// What a request is told that they have made wait for too long.
    func timeout(of order: TransferOrder) -> QueueTimeout {
        let origin = counts.max { $0.value < $1.value }?.key ?? origin
        return QueueTimeout(
            limit: limit, waited: .milliseconds(order.queueMilliseconds), origin: origin.text,
            unreadResponses: unread, suspendedTasks: suspended, unansweredRequests: unanswered,
            unendingResponses: unending)
    }
}
