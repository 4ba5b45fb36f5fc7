import EventLoop
import HTTPCore

/// The consumers that wait for a connection. The clients that they work for take turns, and those
/// of one client are served first come, first served. A consumer is queued at most once.
///
/// All operations but ``takeSurplus(for:)`` take constant time: a busy origin may have thousands of
/// waiters, and when it hangs they give up one by one. It is a class so that checking an origin's
/// empty queue after each exchange copies nothing.
final class WaiterQueue {
    struct Waiter {
        let consumer: any UpstreamConsumer
        /// When the wait began, in microseconds of the monotonic clock; `nil` if a connection is
        /// being made for it, which is not counted as waiting.
        let since: Int64?
        let wantsFresh: Bool
        /// The client that it works for; `nil` for the program itself.
        let client: IPNetwork?
    }

    private var places: [ObjectIdentifier: Place] = [:]
    private var nextPosition: UInt64 = 0
    /// The waiters that accept any connection, and those that need one that has not carried a
    /// request.
    private var any = Turns()
    private var fresh = Turns()
    /// Those for whom a connection is being made that nobody else can use, by their positions.
    private var claimed: [UInt64: Place] = [:]
    /// How many are counted as waiting, by client, without those for whom a connection is being
    /// made: they do not give way.
    private(set) var counted: [IPNetwork?: Int] = [:]

    var isEmpty: Bool { places.isEmpty }
    var count: Int { places.count }

    func append(_ consumer: any UpstreamConsumer, wantsFresh: Bool, since: Int64? = nil) {
        assert(places[ObjectIdentifier(consumer)] == nil)
        let waiter = Waiter(
            consumer: consumer, since: since, wantsFresh: wantsFresh,
            client: consumer.clientNetwork)
        let place = Place(waiter, position: nextPosition)
        nextPosition += 1
        places[ObjectIdentifier(consumer)] = place
        if since != nil { counted[waiter.client, default: 0] += 1 }
        if wantsFresh { fresh.append(place) } else { any.append(place) }
    }

    /// Takes the first waiter that can use the connection; the next one is another client's, if
    /// others wait.
    func take(isFresh: Bool) -> Waiter? {
        guard let place = isFresh ? next : any.first else { return nil }
        let line = place.line
        let waiter = remove(place)
        if let line, !line.places.isEmpty {
            waiter.wantsFresh ? fresh.hadTurn(line) : any.hadTurn(line)
        }
        return waiter
    }

    /// Takes the turn of the first waiter, for a connection that nobody else can use. It goes on
    /// waiting, until ``take(claim:)``, but does not give way to anybody.
    ///
    /// - Returns: the number of the claim, which stands for this wait alone: a consumer may give up
    ///   and wait again on behalf of another client.
    func claim() -> (number: UInt64, waiter: Waiter)? {
        guard let place = next else { return nil }
        let line = place.line
        leaveTurns(place)
        uncount(place.waiter)
        claimed[place.position] = place
        if let line, !line.places.isEmpty {
            place.waiter.wantsFresh ? fresh.hadTurn(line) : any.hadTurn(line)
        }
        return (place.position, place.waiter)
    }

    /// Takes the waiter that a connection was made for; `nil` if it has given up.
    func take(claim number: UInt64) -> Waiter? { claimed[number].map { remove($0) } }

    /// The waiter whose turn it is on a connection; it stays in the queue.
    func first(isFresh: Bool) -> Waiter? { (isFresh ? next : any.first)?.waiter }

    /// The waiter that would get a new connection; it stays in the queue.
    var first: Waiter? { next?.waiter }

    /// A consumer's wait; `nil` if it does not wait.
    func waiter(_ consumer: any UpstreamConsumer) -> Waiter? {
        places[ObjectIdentifier(consumer)]?.waiter
    }

    private var next: Place? {
        guard let one = any.first, let other = fresh.first else { return any.first ?? fresh.first }
        return one.position < other.position ? one : other
    }

    /// - Returns: the consumer's wait, or `nil` if it was not waiting.
    @discardableResult
    func remove(_ consumer: any UpstreamConsumer) -> Waiter? {
        places[ObjectIdentifier(consumer)].map { remove($0) }
    }

    /// Takes the waiter that gives way to one of this client: the last of whoever has most of those
    /// that are counted as waiting. Returns `nil` if that would leave it fewer than this client.
    ///
    /// Takes time linear in the number of clients.
    func takeSurplus(for client: IPNetwork?) -> Waiter? {
        guard let (most, count) = counted.max(by: { $0.value < $1.value }),
            count > counted[client, default: 0] + 1
        else { return nil }
        return takeLast(of: most)
    }

    /// Takes the last waiter of a client that is counted as waiting; `nil` if there is none.
    func takeLast(of client: IPNetwork?) -> Waiter? {
        [any.last(of: client), fresh.last(of: client)].compactMap { $0 }
            .max { $0.position < $1.position }.map { remove($0) }
    }

    /// Takes all waiters, in the order in which they came.
    func takeAll() -> [Waiter] {
        let all = places.values.sorted { $0.position < $1.position }.map(\.waiter)
        places = [:]
        claimed = [:]
        counted = [:]
        any = Turns()
        fresh = Turns()
        return all
    }

    private func remove(_ place: Place) -> Waiter {
        let waiter = place.waiter
        places[ObjectIdentifier(waiter.consumer)] = nil
        if claimed.isEmpty || claimed.removeValue(forKey: place.position) == nil {
            uncount(waiter)
            leaveTurns(place)
        }
        return waiter
    }

    private func uncount(_ waiter: Waiter) {
        guard waiter.since != nil, let count = counted[waiter.client] else { return }
        counted[waiter.client] = count > 1 ? count - 1 : nil
    }

    private func leaveTurns(_ place: Place) {
        if place.waiter.wantsFresh { fresh.remove(place) } else { any.remove(place) }
    }
}

/// A waiter in its client's line.
private final class Place: QueueMember {
    let waiter: WaiterQueue.Waiter
    /// Increases with each waiter.
    let position: UInt64
    unowned var line: Line?
    var nextInQueue: Place?
    var previousInQueue: Place?

    init(_ waiter: WaiterQueue.Waiter, position: UInt64) {
        self.waiter = waiter
        self.position = position
    }
}

/// The waiters of one client, in order.
private final class Line: QueueMember {
    let client: IPNetwork?
    let places = LinkedQueue<Place>()
    var nextInQueue: Line?
    var previousInQueue: Line?

    init(_ client: IPNetwork?) { self.client = client }
}

/// Lines that take turns.
private struct Turns {
    private var lines: [IPNetwork?: Line] = [:]
    private let order = LinkedQueue<Line>()

    /// Whose turn it is.
    var first: Place? { order.first?.places.first }

    mutating func append(_ place: Place) {
        let client = place.waiter.client
        let line: Line
        if let known = lines[client] {
            line = known
        } else {
            line = Line(client)
            lines[client] = line
            order.append(line)
        }
        place.line = line
        line.places.append(place)
    }

    mutating func remove(_ place: Place) {
        guard let line = place.line else { return }
        line.places.remove(place)
        guard line.places.isEmpty else { return }
        lines[line.client] = nil
        order.remove(line)
    }

    /// A line that is not empty goes to the end.
    func hadTurn(_ line: Line) {
        order.remove(line)
        order.append(line)
    }

    /// The last of a client's that is counted as waiting.
    func last(of client: IPNetwork?) -> Place? {
        var place = lines[client]?.places.last
        while let one = place, one.waiter.since == nil { place = one.previousInQueue }
        return place
    }
}
