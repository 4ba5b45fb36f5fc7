import EngineTestSupport
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

    @Test(.timeLimit(.minutes(5)))
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
}
