import Testing

@testable import Engine

@Suite("Waiting for another's response")
struct FollowerLineTests {
    @Test func `patience counts from what came last`() {
        let line = FollowerLine(now: 100)
        let wait = FollowerWait(in: line, patience: 50, now: 120)
        #expect(wait.left(now: 120) == 50)
        #expect(wait.left(now: 170) == 0)
        line.progress(now: 160)
        #expect(wait.left(now: 170) == 40)
        #expect(wait.left(now: 210) == 0)
    }

    @Test func `what came before it waited is no progress for it`() {
        let line = FollowerLine(now: 100)
        line.progress(now: 110)
        #expect(FollowerWait(in: line, patience: 50, now: 150).left(now: 160) == 40)
    }

    @Test func `a client that holds the response up uses patience however much comes`() {
        let line = FollowerLine(now: 0)
        line.hold(now: 0)
        let wait = FollowerWait(in: line, patience: 50, now: 10)
        line.progress(now: 30)
        line.hold(now: 30)
        #expect(wait.left(now: 40) == 20)
        line.goOn(now: 40)
        line.progress(now: 90)
        #expect(wait.left(now: 100) == 20)
        line.hold(now: 100)
        #expect(wait.left(now: 120) == 0)
        // Who came later has waited less.
        #expect(FollowerWait(in: line, patience: 50, now: 115).left(now: 120) == 45)
    }

    @Test func `of those who waited in vain one is stored, unless the leader is`() {
        let line = FollowerLine(now: 0)
        line.hasHeir = true
        #expect(line.mayStore(isHeir: true))
        #expect(!line.mayStore(isHeir: false))
        line.heirStored = true
        #expect(!line.mayStore(isHeir: true))
        let ended = FollowerLine(now: 0)
        ended.hasHeir = true
        ended.end = .stored
        #expect(!ended.mayStore(isHeir: true))
        // Nobody is left who could store it.
        let failed = FollowerLine(now: 0)
        failed.end = .failed
        #expect(failed.mayStore(isHeir: false))
    }
}
