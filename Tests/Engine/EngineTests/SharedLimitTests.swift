import Testing

@testable import PinfoldEngine

@Suite("A limit that workers share")
struct SharedLimitTests {
    @Test func `no more permits are taken than there are`() {
        let limit = SharedLimit()
        #expect(limit.take(limit: 2))
        #expect(limit.take(limit: 2))
        #expect(!limit.take(limit: 2))
        #expect(limit.giveBack(limit: 2) == nil)
        #expect(limit.take(limit: 2))
        #expect(limit.taken == 2)
    }

    @Test func `a worker is queued once`() {
        let limit = SharedLimit()
        #expect(limit.take(limit: 1, orWaitAs: 0, isStarved: true) == .taken)
        #expect(!limit.isWaitedFor)
        #expect(limit.take(limit: 1, orWaitAs: 1, isStarved: true) == .waits(isNew: true))
        #expect(limit.take(limit: 1, orWaitAs: 1, isStarved: true) == .waits(isNew: false))
        #expect(limit.isWaitedFor)
        #expect(limit.hasStarved)
        #expect(limit.hasStarved(otherThan: 0))
        #expect(!limit.hasStarved(otherThan: 1))
    }

    @Test func `a permit that is given back goes to the first worker in the queue at once`() {
        let limit = SharedLimit()
        _ = limit.take(limit: 1)
        _ = limit.take(limit: 1, orWaitAs: 1, isStarved: false)
        _ = limit.take(limit: 1, orWaitAs: 2, isStarved: false)
        #expect(limit.giveBack(limit: 1) == 1)
        #expect(!limit.take(limit: 1), "nobody else gets it")
        #expect(limit.giveBack(limit: 1) == 2)
        #expect(limit.giveBack(limit: 1) == nil)
        #expect(limit.taken == 0)
    }

    @Test func `while more are taken than allowed, no waiter gets what is returned`() {
        let limit = SharedLimit()
        for _ in 0..<4 { _ = limit.take(limit: 4) }
        _ = limit.take(limit: 4, orWaitAs: 1, isStarved: false)
        #expect(!limit.isOver)
        limit.adapt(to: 2)
        #expect(limit.isOver)
        #expect(limit.giveBack(limit: 2) == nil)
        #expect(limit.isOver)
        #expect(limit.giveBack(limit: 2) == nil)
        #expect(!limit.isOver, "as many are taken as there may be")
        #expect(limit.isWaitedFor, "the worker in line is still there")
        #expect(limit.giveBack(limit: 2) == 1)
        #expect(limit.taken == 2)
    }

    @Test func `unused permits are requested while too many are taken`() {
        let limit = SharedLimit()
        for _ in 0..<2 { _ = limit.take(limit: 2) }
        limit.adapt(to: 1)
        #expect(limit.isWaitedFor, "an idle connection is not kept")
        limit.adapt(to: 2)
        #expect(!limit.isWaitedFor)
        #expect(!limit.isOver)
    }

    @Test func `a worker with less than its share comes before the others`() {
        let limit = SharedLimit()
        _ = limit.take(limit: 1)
        _ = limit.take(limit: 1, orWaitAs: 1, isStarved: false)
        _ = limit.take(limit: 1, orWaitAs: 2, isStarved: true)
        #expect(limit.giveBack(limit: 1) == 2)
        #expect(!limit.hasStarved)
        #expect(limit.giveBack(limit: 1) == 1)
    }

    @Test func `a worker that left the queue gets nothing`() {
        let limit = SharedLimit()
        _ = limit.take(limit: 1)
        _ = limit.take(limit: 1, orWaitAs: 1, isStarved: true)
        limit.leave(1)
        #expect(!limit.isWaitedFor)
        #expect(limit.giveBack(limit: 1) == nil)
        #expect(limit.taken == 0)
    }

    @Test(arguments: [
        // limit, workers, own, starved, gives way
        (8, 2, 3, true, false), (8, 2, 4, false, false), (8, 2, 5, false, true),
        (1, 2, 0, true, true), (1, 2, 1, false, true), (1, 1, 1, false, false),
        (3, 2, 1, false, false), (3, 2, 2, false, true),
    ])
    func `shares are equal, and with fewer permits than workers they take turns`(
        limit: Int, workers: Int, own: Int, isStarved: Bool, givesWay: Bool
    ) {
        let share = FairShare(limit: limit, workers: workers)
        #expect(share.isStarved(own) == isStarved)
        #expect(share.givesWay(own) == givesWay)
    }

    @Test func `an origin's limit is the same for all workers and forgotten without use`() {
        let limits = OriginLimits()
        func key(_ number: Int) -> Origin.Key {
            Origin.Key(
                host: "h\(number)", port: 80, isSecure: false, requestedPort: 80)
        }
        let one = limits.limit(of: key(0))
        #expect(limits.limit(of: key(0)) === one)
        for number in 1...3000 { _ = limits.limit(of: key(number)) }
        #expect(limits.count < 2000)
        #expect(limits.limit(of: key(0)) === one)
    }
}
