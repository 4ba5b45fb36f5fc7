import EventLoop
import Locking
import Testing

@testable import PinfoldClient

@Suite("Tasks that a loop wakes", .timeLimit(.minutes(30)))
struct WakeBatchTests {
    /// Waiting tasks, and the number of them that were resumed.
    private final class Sleepers: Sendable {
        private let waiting = Locked<[Waiter]>([])
        private let woken = Locked(0)

        var count: Int { waiting.withLock { $0.count } }
        var wokenCount: Int { woken.withLock { $0 } }

        func sleep(_ count: Int) async {
            for _ in 0..<count {
                Task {
                    await Waiter.wait { waiter in
                        waiting.withLock { $0.append(waiter) }
                    }
                    woken.withLock { $0 += 1 }
                }
            }
            while self.count < count { await Task.yield() }
        }

        func next() -> Waiter? {
            waiting.withLock { $0.popLast() }
        }

        func areWoken(_ count: Int) async {
            while wokenCount < count { await Task.yield() }
        }
    }

    @Test func `wake at the end of its turn, together`() async throws {
        let loop = try EventLoop()
        let wakes = WakeBatch(of: loop, in: WakeQueue())
        let sleepers = Sleepers()
        await sleepers.sleep(6)
        for round in 1...2 {
            for _ in 0..<3 { wakes.add(try #require(sleepers.next())) }
            #expect(sleepers.wokenCount == 3 * (round - 1))
            loop.turn(waitingAtMost: 0)
            await sleepers.areWoken(3 * round)
        }
    }

    @Test func `wake sooner if there are many`() async throws {
        let loop = try EventLoop()
        let wakes = WakeBatch(of: loop, in: WakeQueue())
        let sleepers = Sleepers()
        await sleepers.sleep(WakeBatch.most + 1)
        for _ in 0..<WakeBatch.most { wakes.add(try #require(sleepers.next())) }
        await sleepers.areWoken(WakeBatch.most)
        wakes.add(try #require(sleepers.next()))
        #expect(sleepers.wokenCount == WakeBatch.most)
        wakes.wake()
        await sleepers.areWoken(WakeBatch.most + 1)
        // The next turn finds none.
        loop.turn(waitingAtMost: 0)
    }

    @Test func `are woken one for each call`() async throws {
        let line = WakeQueue()
        let sleepers = Sleepers()
        await sleepers.sleep(5)
        #expect(!line.wakeNext())
        line.append([try #require(sleepers.next()), try #require(sleepers.next())])
        line.append([try #require(sleepers.next())])
        for count in 1...3 {
            #expect(line.wakeNext())
            await sleepers.areWoken(count)
        }
        #expect(!line.wakeNext())
        line.append([try #require(sleepers.next()), try #require(sleepers.next())])
        #expect(line.wakeNext())
        #expect(line.wakeNext())
        #expect(!line.wakeNext())
        await sleepers.areWoken(5)
    }

    @Test func `wake the next when they are woken`() async throws {
        let runtime = try ClientRuntime()
        defer { runtime.close() }
        let channel = TransferChannel(runtime.nextNumber(), on: runtime, progress: nil)
        let sleepers = Sleepers()
        await sleepers.sleep(1)
        let reader = Task { while try await channel.part() != nil {} }
        runtime.woken.append([try #require(sleepers.next())])
        // The loop has no part in either.
        while sleepers.wokenCount == 0 {
            _ = channel.push(nil, [[1]])
            await Task.yield()
        }
        channel.finish(TransferTimes())
        try await reader.value
    }

    @Test func `are each woken exactly once, by loop or task`() async throws {
        let line = WakeQueue()
        let sleepers = Sleepers()
        let count = 500
        await sleepers.sleep(count)
        var waiters: [Waiter] = []
        while let waiter = sleepers.next() { waiters.append(waiter) }
        // Tests are debug builds, in which a waiter that is resumed twice ends the process.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask { for _ in 0..<count { line.wakeNext() } }
            }
            for waiter in waiters { line.append([waiter]) }
        }
        while line.wakeNext() {}
        await sleepers.areWoken(count)
        #expect(sleepers.wokenCount == count)
    }
}
