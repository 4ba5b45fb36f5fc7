/// The requests under way that hold the places which others wait for.
struct QueueHolders {
    /// For how many times the patience of the request that waits content of unknown length counts
    /// as coming nearer to its end.
    private static let longestStream: Int64 = 10

    /// What makes the others wait.
    let limit: QueueTimeout.Limit
    /// Of the request that waits.
    let origin: RequestOrigin
    /// How long it may wait while none of them comes nearer to its end, in milliseconds.
    let patience: Int64
    /// When one of them last came nearer to its end, in the loop's milliseconds.
    private(set) var advancedAt: Int64 = 0
    private var (unread, suspended, unanswered, unending, ofUnknownLength) = (0, 0, 0, 0, 0)
    private var counts: [RequestOrigin: Int] = [:]

    init(limit: QueueTimeout.Limit, origin: RequestOrigin, patience: Int64) {
        (self.limit, self.origin, self.patience) = (limit, origin, patience)
    }

    /// Adds a request under way, if it holds one of these places.
    mutating func add(_ transfer: Transfer) {
        switch limit {
        case .requests: break
        case .requestsPerOrigin, .handshakes:
            guard transfer.order.origin == origin else { return }
        }
        advancedAt = max(
            advancedAt, transfer.advance.latest(streamingAtMost: patience * Self.longestStream))
        counts[transfer.order.origin, default: 0] += 1
        guard !transfer.isSuspended else {
            suspended += 1
            return
        }
        switch transfer.channel.reading {
        case .unanswered: unanswered += 1
        case .unread where !transfer.hasStreamed(within: patience): unread += 1
        case .unread, .caughtUp:
            unending += 1
            if !transfer.responseHasEnd { ofUnknownLength += 1 }
        }
    }

    /// What a request is told that they have made wait for too long.
    func timeout(of order: TransferOrder) -> QueueTimeout {
        let origin = counts.max { $0.value < $1.value }?.key ?? origin
        return QueueTimeout(
            limit: limit, waited: .milliseconds(order.queueMilliseconds), origin: origin.text,
            unreadResponses: unread, suspendedTasks: suspended, unansweredRequests: unanswered,
            unendingResponses: unending, responsesOfUnknownLength: ofUnknownLength)
    }
}
