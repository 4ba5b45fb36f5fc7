import Testing

@testable import CachePolicy
@testable import PinfoldEngine

@Suite("Followers of a request")
struct FollowerQueueTests {
    @Test func `patience counts from what came last`() {
        let line = FollowerQueue(now: 100)
        let wait = FollowerWait(in: line, patience: 50, now: 120)
        #expect(wait.left(now: 120) == 50)
        #expect(wait.left(now: 170) == 0)
        line.progress(now: 160)
        #expect(wait.left(now: 170) == 40)
        #expect(wait.left(now: 210) == 0)
    }

    @Test func `what came before it waited is no progress for it`() {
        let line = FollowerQueue(now: 100)
        line.progress(now: 110)
        #expect(FollowerWait(in: line, patience: 50, now: 150).left(now: 160) == 40)
    }

    @Test func `a client that holds the response up uses patience, however much data arrives`() {
        let line = FollowerQueue(now: 0)
        line.hold(now: 0)
        let wait = FollowerWait(in: line, patience: 50, now: 10)
        line.progress(now: 30)
        line.hold(now: 30)
        #expect(wait.left(now: 40) == 20)
        line.resume(now: 40)
        line.progress(now: 90)
        #expect(wait.left(now: 100) == 20)
        line.hold(now: 100)
        #expect(wait.left(now: 120) == 0)
        // A later follower has waited less.
        #expect(FollowerWait(in: line, patience: 50, now: 115).left(now: 120) == 45)
    }

    @Test func `of the followers that stopped waiting, one response per variant is stored`() {
        let (english, german) = (VaryKey(unchecked: [1]), VaryKey(unchecked: [2]))
        let line = FollowerQueue(now: 0)
        #expect(line.claim(english, sentAt: 1))
        #expect(!line.claim(english, sentAt: 1))
        #expect(line.claim(german, sentAt: 1))
        #expect(!line.hasStored(english, since: 1))
        line.noteStored(english, at: 5)
        #expect(line.hasStored(english, since: 1))
        #expect(!line.claim(english, sentAt: 5))
        // A response requested afterwards may be newer than the stored one.
        #expect(line.claim(english, sentAt: 6))
        // The follower that would have stored it did not.
        line.release(german)
        #expect(!line.hasStored(german, since: 1))
        #expect(line.claim(german, sentAt: 1))
    }

    @Test func `what the leader has stored is not stored again`() {
        let line = FollowerQueue(now: 0)
        line.noteStored(.none, at: 5)
        #expect(!line.claim(.none, sentAt: 1))
        #expect(line.claim(VaryKey(unchecked: [1]), sentAt: 1))
    }
}
