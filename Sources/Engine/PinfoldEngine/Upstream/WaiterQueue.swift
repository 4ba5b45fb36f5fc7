import EventLoop

/// The consumers that wait for a connection, first come, first served. A consumer is queued at most
/// once.
///
/// All operations take amortized constant time: a busy origin may have thousands of waiters, and
/// when it hangs they give up one by one. It is a class so that checking an origin's empty queue
/// after each exchange copies nothing.
final class WaiterQueue {
    struct Waiter {
        let consumer: any UpstreamConsumer
        /// When the wait began, in microseconds of the monotonic clock; `nil` if a connection is
        /// being made for it, which is not counted as waiting.
        let since: Int64?
        let wantsFresh: Bool
    }

    /// By position, which increases with each waiter.
    private var waiters: [UInt64: Waiter] = [:]
    private var positions: [ObjectIdentifier: UInt64] = [:]
    private var nextPosition: UInt64 = 0
    /// The positions of the waiters that accept any connection, and of those that need one that has
    /// not carried a request. Positions of waiters that gave up stay in the queues and are skipped.
    private var anyQueue = FIFO<UInt64>()
    private var freshQueue = FIFO<UInt64>()

    /// How many abandoned positions may stay in the queues, beyond twice the number of waiters,
    /// before they are removed.
    private static let slack = 32

    var isEmpty: Bool { waiters.isEmpty }
    var count: Int { waiters.count }

    func append(
        _ consumer: any UpstreamConsumer, wantsFresh: Bool, since: Int64? = nil
    ) {
        assert(positions[ObjectIdentifier(consumer)] == nil)
        let position = nextPosition
        nextPosition += 1
        waiters[position] = Waiter(consumer: consumer, since: since, wantsFresh: wantsFresh)
        positions[ObjectIdentifier(consumer)] = position
        if wantsFresh { freshQueue.append(position) } else { anyQueue.append(position) }
    }

    /// Takes the first waiter that can use the connection.
    func take(isFresh: Bool) -> Waiter? {
        guard !waiters.isEmpty else { return nil }
        skipAbandoned(&anyQueue)
        skipAbandoned(&freshQueue)
        let (any, fresh) = (anyQueue.first, isFresh ? freshQueue.first : nil)
        guard let position = any.map({ min($0, fresh ?? $0) }) ?? fresh else { return nil }
        return takeOut(position)
    }

    /// The waiter that would get a new connection; it stays in the queue.
    var first: Waiter? {
        guard !waiters.isEmpty else { return nil }
        skipAbandoned(&anyQueue)
        skipAbandoned(&freshQueue)
        return [anyQueue.first, freshQueue.first].compactMap { $0 }.min().flatMap { waiters[$0] }
    }

    /// - Returns: the consumer's wait, or `nil` if it was not waiting.
    @discardableResult
    func remove(_ consumer: any UpstreamConsumer) -> Waiter? {
        guard let position = positions[ObjectIdentifier(consumer)] else { return nil }
        let waiter = takeOut(position)
        if anyQueue.count + freshQueue.count > waiters.count * 2 + Self.slack {
            let waiters = waiters
            anyQueue.keep { waiters[$0] != nil }
            freshQueue.keep { waiters[$0] != nil }
        }
        return waiter
    }

    /// Takes all waiters, in order.
    func takeAll() -> [Waiter] {
        let all = waiters.sorted { $0.key < $1.key }.map(\.value)
        waiters = [:]
        positions = [:]
        anyQueue = FIFO()
        freshQueue = FIFO()
        return all
    }

    private func takeOut(_ position: UInt64) -> Waiter? {
        guard let waiter = waiters.removeValue(forKey: position) else { return nil }
        positions[ObjectIdentifier(waiter.consumer)] = nil
        return waiter
    }

    private func skipAbandoned(_ queue: inout FIFO<UInt64>) {
        while let position = queue.first, waiters[position] == nil { _ = queue.popFirst() }
    }
}
