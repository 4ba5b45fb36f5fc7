import EventLoop
import Locking
import Testing

@testable import PinfoldClient

@Suite("Tasks that a loop wakes")
struct WakeBatchTests {
    /// Tasks that wait, and how many of them were woken.
    private final class Sleepers: Sendable {
        private let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
        private let woken = Locked(0)

        var count: Int { waiting.withLock { $0.count } }
        var wokenCount: Int { woken.withLock { $0 } }

        func sleep(_ count: Int) async {
            for _ in 0..<count {
                Task {
                    await withCheckedContinuation { waiter in
                        waiting.withLock { $0.append(waiter) }
                    }
                    woken.withLock { $0 += 1 }
                }
            }
            while self.count < count { await Task.yield() }
        }

        func next() -> CheckedContinuation<Void, Never>? {
            waiting.withLock { $0.popLast() }
        }

        func areWoken(_ count: Int) async {
            while wokenCount < count { await Task.yield() }
        }
    }

    @Test func `wake at the end of its turn, together`() async throws {
        let loop = try EventLoop()
        let wakes = WakeBatch(of: loop)
        let sleepers = Sleepers()
        await sleepers.sleep(6)
        for round in 1...2 {
            for _ in 0..<3 { wakes.add(try #require(sleepers.next())) }
            #expect(sleepers.wokenCount == 3 * (round - 1))
            loop.turn(waitingAtMost: 0)
            await sleepers.areWoken(3 * round)
        }
    }

    @Test func `wake sooner where there are many`() async throws {
        let loop = try EventLoop()
        let wakes = WakeBatch(of: loop)
        let sleepers = Sleepers()
        await sleepers.sleep(WakeBatch.most + 1)
        for _ in 0..<WakeBatch.most { wakes.add(try #require(sleepers.next())) }
        await sleepers.areWoken(WakeBatch.most)
        wakes.add(try #require(sleepers.next()))
        #expect(sleepers.wokenCount == WakeBatch.most)
        wakes.wake()
        await sleepers.areWoken(WakeBatch.most + 1)
        // The turn after finds nobody.
        loop.turn(waitingAtMost: 0)
    }
}
