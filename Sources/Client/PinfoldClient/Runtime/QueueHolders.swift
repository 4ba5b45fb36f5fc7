/// The active requests that occupy the slots for which others wait.
struct QueueHolders {
    /// Content of unknown length counts as progress for this many times the patience of the waiting
    /// request.
    private static let longestStream: Int64 = 10

    /// The limit that makes others wait.
    let limit: QueueTimeoutError.Limit
    /// The origin of the waiting request.
    let origin: RequestOrigin
    /// How long the request may wait without progress of any of the active ones, in milliseconds.
    let patience: Int64
    /// When one of them last made progress, in the loop's milliseconds.
    private(set) var advancedAt: Int64 = 0
    private var (unread, suspended, unanswered, unending, ofUnknownLength) = (0, 0, 0, 0, 0)
    private var counts: [RequestOrigin: Int] = [:]

    init(limit: QueueTimeoutError.Limit, origin: RequestOrigin, patience: Int64) {
        (self.limit, self.origin, self.patience) = (limit, origin, patience)
    }

    /// Adds an active request, if it occupies one of these slots.
    mutating func add(_ transfer: Transfer) {
        switch limit {
        case .requests: break
        case .requestsPerOrigin, .handshakes:
            guard transfer.request.origin == origin else { return }
        }
        advancedAt = max(
            advancedAt, transfer.advance.latest(streamingAtMost: patience * Self.longestStream))
        counts[transfer.request.origin, default: 0] += 1
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

    /// The error for a request that has waited too long.
    func timeout(of request: TransferRequest) -> QueueTimeoutError {
        let origin = counts.max { $0.value < $1.value }?.key ?? origin
        return QueueTimeoutError(
            limit: limit, waited: .milliseconds(request.queueMilliseconds), origin: origin.text,
            unreadResponses: unread, suspendedTasks: suspended, unansweredRequests: unanswered,
            unfinishedResponses: unending, responsesOfUnknownLength: ofUnknownLength)
    }
}
