import EngineTestSupport
import HTTPCore
import Testing

@testable import PinfoldEngine

@Suite("The queue for connections")
struct WaiterQueueTests {
    @Test func `an empty queue has no members`() {
        let queue = WaiterQueue()
        #expect(queue.isEmpty)
        #expect(queue.count == 0)
        #expect(queue.take(isFresh: true) == nil)
        #expect(queue.takeAll().isEmpty)
    }

    @Test func `the first waiter is served first`() {
        let queue = WaiterQueue()
        let consumers = (0..<4).map { _ in IdleConsumer() }
        for consumer in consumers { queue.append(consumer, wantsFresh: false) }
        #expect(queue.count == 4)
        for (index, consumer) in consumers.enumerated() {
            #expect(queue.take(isFresh: index % 2 == 0)?.consumer === consumer)
        }
        #expect(queue.isEmpty)
    }

    private static func network(_ number: UInt8) -> IPNetwork {
        IPNetwork(IPAddress("192.0.2.\(number)")!)
    }

    /// A queue of so many waiters of each client, one client after the other.
    private static func queue(_ counts: [Int], since: Int64? = 1) -> WaiterQueue {
        let queue = WaiterQueue()
        for (number, count) in counts.enumerated() {
            for index in 0..<count {
                queue.append(
                    IdleConsumer(of: Self.network(UInt8(number))),
                    wantsFresh: index.isMultiple(of: 2), since: since)
            }
        }
        return queue
    }

    private static func turns(_ queue: WaiterQueue, _ count: Int, isFresh: Bool) -> [Int] {
        (0..<count).compactMap { _ in
            guard let client = queue.take(isFresh: isFresh)?.client else { return nil }
            return (0..<10).first { network(UInt8($0)) == client }
        }
    }

    @Test func `clients take turns, whoever has how many waiters`() {
        let queue = WaiterQueue()
        for (number, count) in [50, 3, 1].enumerated() {
            for _ in 0..<count {
                queue.append(IdleConsumer(of: Self.network(UInt8(number))), wantsFresh: false)
            }
        }
        #expect(Self.turns(queue, 9, isFresh: true) == [0, 1, 2, 0, 1, 0, 1, 0, 0])
        // Who comes now does not wait for the forty others.
        queue.append(IdleConsumer(of: Self.network(3)), wantsFresh: false)
        #expect(Self.turns(queue, 3, isFresh: true).contains(3))
        #expect(queue.count == 43)
    }

    @Test func `clients take turns for used connections beside those that need fresh ones`() {
        let queue = Self.queue([6, 6, 6])
        #expect(Self.turns(queue, 9, isFresh: false) == [0, 1, 2, 0, 1, 2, 0, 1, 2])
        #expect(Self.turns(queue, 1, isFresh: false) == [])
        #expect(Self.turns(queue, 9, isFresh: true) == [0, 1, 2, 0, 1, 2, 0, 1, 2])
        #expect(queue.isEmpty)
    }

    @Test func `who leaves gives its turn to the next`() {
        let queue = WaiterQueue()
        let consumers = (0..<3).map { IdleConsumer(of: Self.network(UInt8($0))) }
        for consumer in consumers { queue.append(consumer, wantsFresh: false) }
        queue.remove(consumers[0])
        #expect(Self.turns(queue, 2, isFresh: true) == [1, 2])
    }

    @Test(
        arguments: [
            // The counts of the clients, for whom room is made, and whose waiter gives way.
            ([4], 0, nil), ([4], 1, 0), ([1], 1, nil), ([1, 1, 1], 3, nil), ([2, 1, 1], 3, 0),
            ([2, 3, 2], 0, nil), ([2, 4, 2], 0, 1), ([1, 1, 9], 1, 2), ([], 0, nil),
        ] as [([Int], UInt8, Int?)])
    func `the last waiter of whoever has the most gives way`(
        counts: [Int], newcomer: UInt8, loser: Int?
    ) {
        let queue = Self.queue(counts)
        let surplus = queue.takeSurplus(for: Self.network(newcomer))
        #expect(surplus?.client == loser.map { Self.network(UInt8($0)) })
        #expect(queue.count == counts.reduce(0, +) - (loser == nil ? 0 : 1))
    }

    @Test func `the one that came last gives way`() {
        let queue = WaiterQueue()
        let consumers = (0..<5).map { _ in IdleConsumer(of: Self.network(0)) }
        for (index, consumer) in consumers.enumerated() {
            queue.append(consumer, wantsFresh: index == 3, since: index == 4 ? nil : 1)
        }
        // A connection is being made for the last one, which is not counted.
        #expect(queue.takeSurplus(for: Self.network(1))?.consumer === consumers[3])
        #expect(queue.takeSurplus(for: Self.network(1))?.consumer === consumers[2])
        #expect(queue.takeSurplus(for: Self.network(1))?.consumer === consumers[1])
        #expect(queue.takeSurplus(for: Self.network(1)) == nil)
        #expect(queue.count == 2)
    }

    @Test func `a used connection skips a waiter that needs a fresh one`() {
        let queue = WaiterQueue()
        let (fresh, any, another) = (IdleConsumer(), IdleConsumer(), IdleConsumer())
        queue.append(fresh, wantsFresh: true)
        queue.append(any, wantsFresh: false)
        queue.append(another, wantsFresh: false)
        #expect(queue.take(isFresh: false)?.consumer === any)
        // Who was passed by has not lost its place.
        #expect(queue.take(isFresh: true)?.consumer === fresh)
        #expect(queue.take(isFresh: true)?.consumer === another)
    }

    @Test func `a used connection is given to no waiter if all need fresh ones`() {
        let queue = WaiterQueue()
        queue.append(IdleConsumer(), wantsFresh: true)
        queue.append(IdleConsumer(), wantsFresh: true)
        #expect(queue.take(isFresh: false) == nil)
        #expect(queue.count == 2)
    }

    @Test func `a waiter that gave up is not served`() {
        let queue = WaiterQueue()
        let (first, second, stranger) = (IdleConsumer(), IdleConsumer(), IdleConsumer())
        queue.append(first, wantsFresh: false)
        queue.append(second, wantsFresh: true)
        queue.remove(stranger)
        #expect(queue.count == 2)
        queue.remove(first)
        queue.remove(first)
        #expect(queue.count == 1)
        #expect(queue.take(isFresh: true)?.consumer === second)
    }

    @Test func `taking all keeps the order and leaves none`() {
        let queue = WaiterQueue()
        let consumers = (0..<3).map { _ in IdleConsumer() }
        for consumer in consumers { queue.append(consumer, wantsFresh: true) }
        let all = queue.takeAll()
        #expect(all.map { ObjectIdentifier($0.consumer) } == consumers.map { ObjectIdentifier($0) })
        #expect(queue.isEmpty)
    }

    @Test func `a queue keeps no member that has left`() {
        let queue = WaiterQueue()
        weak var weakConsumer: IdleConsumer?
        do {
            let consumer = IdleConsumer()
            weakConsumer = consumer
            queue.append(consumer, wantsFresh: false)
        }
        #expect(weakConsumer != nil)
        _ = queue.take(isFresh: true)
        #expect(weakConsumer == nil)
    }

    @Test func `a waiter that gave up reports since when it waited`() {
        let queue = WaiterQueue()
        let (waiting, connecting) = (IdleConsumer(), IdleConsumer())
        queue.append(waiting, wantsFresh: false, since: 7)
        queue.append(connecting, wantsFresh: false)
        #expect(queue.remove(waiting)?.since == 7)
        #expect(queue.remove(waiting) == nil)
        let taken = queue.take(isFresh: true)
        #expect(taken?.consumer === connecting)
        #expect(taken?.since == nil)
    }

    @Test func `a waiter that leaves and returns is last`() {
        let queue = WaiterQueue()
        let (first, second) = (IdleConsumer(), IdleConsumer())
        queue.append(first, wantsFresh: false)
        queue.append(second, wantsFresh: false)
        queue.remove(first)
        queue.append(first, wantsFresh: true)
        #expect(queue.take(isFresh: true)?.consumer === second)
        #expect(queue.take(isFresh: true)?.consumer === first)
    }

    @Test(.timeLimit(.minutes(30)))
    func `tens of thousands give up in any order`() {
        let queue = WaiterQueue()
        let last = IdleConsumer()
        let consumers = (0..<40_000).map { _ in IdleConsumer() }
        for (index, consumer) in consumers.enumerated() {
            queue.append(consumer, wantsFresh: index.isMultiple(of: 3))
        }
        queue.append(last, wantsFresh: false)
        for consumer in consumers.shuffled() { queue.remove(consumer) }
        #expect(queue.count == 1)
        #expect(queue.take(isFresh: false)?.consumer === last)
        #expect(queue.isEmpty)
    }

    // MARK: Claims

    @Test func `a claim takes a turn, and the wait goes on`() throws {
        let queue = WaiterQueue()
        for number in [0, 0, 1] as [UInt8] {
            queue.append(IdleConsumer(of: Self.network(number)), wantsFresh: false, since: 1)
        }
        let (first, waiter) = try #require(queue.claim())
        #expect(waiter.client == Self.network(0))
        #expect(queue.count == 3)
        // The other client's turn, and then the first one's again.
        #expect(queue.first(isFresh: true)?.client == Self.network(1))
        let (second, other) = try #require(queue.claim())
        #expect(other.client == Self.network(1))
        #expect(queue.first?.client == Self.network(0))
        #expect(queue.take(claim: first)?.consumer === waiter.consumer)
        #expect(queue.take(claim: first) == nil, "it is over")
        #expect(queue.take(claim: second)?.consumer === other.consumer)
        #expect(queue.count == 1)
        #expect(queue.claim() != nil && queue.claim() == nil)
        #expect(!queue.isEmpty, "the last one still waits")
    }

    @Test func `a claim does not stand for a later wait of the same consumer`() throws {
        let queue = WaiterQueue()
        let consumer = IdleConsumer(of: Self.network(1))
        queue.append(consumer, wantsFresh: false)
        let (number, _) = try #require(queue.claim())
        #expect(queue.remove(consumer) != nil)
        #expect(queue.isEmpty)
        consumer.clientNetwork = Self.network(2)
        queue.append(consumer, wantsFresh: true)
        #expect(queue.take(claim: number) == nil)
        #expect(queue.take(isFresh: true)?.client == Self.network(2))
    }

    @Test func `those whose connection is being made are among all, and never give way`() throws {
        let queue = Self.queue([3, 1])
        for _ in 0..<4 { #expect(queue.claim() != nil) }
        #expect(queue.takeSurplus(for: Self.network(5)) == nil)
        #expect(queue.takeAll().count == 4)
        #expect(queue.isEmpty && queue.claim() == nil)
    }

    @Test func `who has only claims has no surplus, and whoever has one gives way`() throws {
        let queue = Self.queue([5])
        let claims = (0..<5).compactMap { _ in queue.claim()?.number }
        for _ in 0..<3 {
            queue.append(IdleConsumer(of: Self.network(1)), wantsFresh: false, since: 1)
        }
        #expect(queue.takeSurplus(for: Self.network(2))?.client == Self.network(1))
        #expect(queue.takeSurplus(for: Self.network(1)) == nil)
        for claim in claims { #expect(queue.take(claim: claim) != nil) }
        #expect(queue.counted == [Self.network(1): 2])
    }
}
