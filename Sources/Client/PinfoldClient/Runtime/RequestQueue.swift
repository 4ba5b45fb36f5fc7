/// Determines which requests of a session are active and which wait. The number of active requests
/// is limited per origin and in total.
///
/// Waiting requests are started by their urgency, the lowest number first; among equal ones, the
/// oldest (or the youngest) comes first. It is a value that knows only increasing numbers.
package struct RequestQueue: Sendable {
    /// The requests to one origin.
    private struct OriginQueue {
        var active = 0
        /// The waiting requests by their urgency.
        var waiting = Array(
            repeating: WaitingNumbers(), count: RequestPriority.urgencies.count)

        var isEmpty: Bool { active == 0 && level == nil }

        /// The first urgency with a waiting request.
        var level: Int? { waiting.indices.first { !waiting[$0].isEmpty } }
    }

    let perOrigin: Int
    let total: Int
    let order: QueueOrder
    /// The queues of all origins except the most recent one.
    private var queues: [RequestOrigin: OriginQueue] = [:]
    /// The most recently used origin: many consecutive requests go to the same one.
    private var latestOrigin: RequestOrigin?
    private var latestQueue = OriginQueue()
    /// The origins with waiting requests.
    private var waitingOrigins: Set<RequestOrigin> = []
    private var active: Set<UInt64> = []

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - perOrigin: The maximum number of active requests per origin; at least 1.
    ///   - total: The maximum number of active requests; at least 1.
    package init(perOrigin: Int, total: Int, order: QueueOrder) {
        self.perOrigin = max(1, perOrigin)
        self.total = max(1, total)
        self.order = order
    }

    /// Whether no request is active or waiting.
    var isEmpty: Bool {
        queues.isEmpty && latestQueue.isEmpty && waitingOrigins.isEmpty && active.isEmpty
    }

    /// Whether a request is active.
    package func isActive(_ number: UInt64) -> Bool { active.contains(number) }

    /// The active requests, unordered.
    package var activeNumbers: Set<UInt64> { active }

    /// Returns the limit that makes the requests to an origin wait.
    func limit(at origin: RequestOrigin) -> QueueTimeoutError.Limit {
        let most = most(at: origin)
        guard queue(of: origin)?.active ?? 0 >= most else { return .requests(total) }
        return origin.isHandshakeOrigin ? .handshakes : .requestsPerOrigin(most)
    }

    private func most(at origin: RequestOrigin) -> Int { origin.isHandshakeOrigin ? 1 : perOrigin }

    /// Adds a request. Returns whether it begins at once; otherwise ``remove(_:of:)`` returns it
    /// when it may begin.
    package mutating func add(
        _ number: UInt64, to origin: RequestOrigin, priority: RequestPriority
    ) -> Bool {
        let most = most(at: origin)
        let total = total
        let begins = active.count < total
        let isActive = change(origin) { queue in
            guard begins, queue.active < most else {
                queue.waiting[priority.urgency].insert(number)
                return false
            }
            queue.active += 1
            return true
        }
        if isActive { active.insert(number) } else { waitingOrigins.insert(origin) }
        return isActive
    }

    /// Adds a request that is running already, whatever the limits.
    package mutating func addRunning(_ number: UInt64, to origin: RequestOrigin) {
        guard active.insert(number).inserted else { return }
        change(origin) { $0.active += 1 }
    }

    /// Modifies the queue of an origin, which becomes the most recent one.
    private mutating func change<Answer>(
        _ origin: RequestOrigin, _ body: (inout OriginQueue) -> Answer
    ) -> Answer {
        if latestOrigin != origin {
            if let latestOrigin, !latestQueue.isEmpty { queues[latestOrigin] = latestQueue }
            latestOrigin = origin
            latestQueue = queues.removeValue(forKey: origin) ?? OriginQueue()
        }
        return body(&latestQueue)
    }

    private func queue(of origin: RequestOrigin) -> OriginQueue? {
        latestOrigin == origin ? latestQueue : queues[origin]
    }

    /// Removes a request that has ended or is no longer waiting, and returns the requests that may
    /// begin in its place. Has no effect for an unknown request.
    package mutating func remove(_ number: UInt64, of origin: RequestOrigin) -> [UInt64] {
        guard active.remove(number) != nil else {
            giveUp(number, of: origin)
            return []
        }
        change(origin) { $0.active -= 1 }
        var next: [UInt64] = []
        while active.count < total, let number = takeNext() {
            active.insert(number)
            next.append(number)
        }
        return next
    }

    private mutating func giveUp(_ number: UInt64, of origin: RequestOrigin) {
        let hasWaiting = change(origin) { queue in
            for level in queue.waiting.indices where queue.waiting[level].remove(number) { break }
            return queue.level != nil
        }
        if !hasWaiting { waitingOrigins.remove(origin) }
    }

    private mutating func takeNext() -> UInt64? {
        guard !waitingOrigins.isEmpty, let origin = nextOrigin() else { return nil }
        let order = order
        let (number, hasWaiting) = change(origin) { queue -> (UInt64?, Bool) in
            guard let level = queue.level else { return (nil, false) }
            queue.active += 1
            let number =
                order == .lastInFirstOut
                ? queue.waiting[level].removeLast() : queue.waiting[level].removeFirst()
            return (number, queue.level != nil)
        }
        if !hasWaiting { waitingOrigins.remove(origin) }
        return number
    }

    /// Returns the origin whose request is next: among those below their limit, the one whose next
    /// request is the most urgent; if equal, the oldest (or the youngest).
    private func nextOrigin() -> RequestOrigin? {
        var best: (origin: RequestOrigin, level: Int, number: UInt64)?
        for origin in waitingOrigins {
            guard let queue = queue(of: origin), queue.active < most(at: origin),
                let level = queue.level,
                let number = order == .lastInFirstOut
                    ? queue.waiting[level].last : queue.waiting[level].first
            else { continue }
            if let best {
                guard
                    level < best.level
                        || level == best.level
                            && (order == .firstInFirstOut
                                ? number < best.number : number > best.number)
                else { continue }
            }
            best = (origin, level, number)
        }
        return best?.origin
    }
}
