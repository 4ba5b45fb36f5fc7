import TestSupport
import Testing

@testable import EventLoop

private let tick = TimerWheel.tickMilliseconds
/// The furthest tick that an entry can have, counted from the current one.
private let horizonTicks = Int64(TimerWheel.slotCount) - 1

extension TimerWheel {
    /// The entries that are due at `now`.
    fileprivate mutating func advance(to now: Int64) -> [Entry] {
        var due = FIFO<Entry>()
        advance(to: now, into: &due)
        var entries: [Entry] = []
        while let entry = due.popFirst() { entries.append(entry) }
        return entries
    }
}

@Suite("The timer wheel")
struct TimerWheelTests {
    private func token(_ slot: Int) -> Token { Token(slot: slot, generation: 0) }

    @Test func `an empty wheel waits forever and hands out nothing`() {
        var wheel = TimerWheel(now: 12_345)
        #expect(wheel.wait(from: 12_345) == -1)
        #expect(wheel.advance(to: 1_000_000).isEmpty)
        #expect(wheel.count == 0)
    }

    @Test(arguments: [0, 1, 7, 8, 9, 1003] as [Int64])
    func `an entry is handed out within one tick and never before its time`(start: Int64) {
        for delay in 1...(3 * tick) {
            var wheel = TimerWheel(now: start)
            #expect(wheel.add(token(1), at: start + delay) == start + delay)
            var handedOut: Int64?
            for now in start...(start + delay + 2 * tick) where handedOut == nil {
                if !wheel.advance(to: now).isEmpty { handedOut = now }
            }
            guard let handedOut else {
                Issue.record("delay \(delay) from \(start): never")
                continue
            }
            #expect(handedOut >= start + delay)
            #expect(handedOut < start + delay + tick)
        }
    }

    @Test(arguments: [-5, 0, 1, 99, 100] as [Int64])
    func `a time that has passed is due at the next tick`(time: Int64) {
        var wheel = TimerWheel(now: 100)
        #expect(wheel.add(token(1), at: time) == time)
        #expect(wheel.advance(to: 103).isEmpty)
        #expect(wheel.advance(to: 104) == [TimerWheel.Entry(token: token(1), time: time)])
    }

    @Test func `waiting as long as asked is enough for the next entry`() {
        var random = SeededRandom(seed: 7)
        for _ in 0..<2000 {
            let now = Int64.random(in: 0...100_000, using: &random)
            var wheel = TimerWheel(now: now)
            for slot in 0..<3 {
                _ = wheel.add(token(slot), at: now + .random(in: -50...9000, using: &random))
            }
            let wait = wheel.wait(from: now)
            #expect(wait >= 0)
            #expect(wheel.advance(to: now + Int64(wait) - 1).isEmpty)
            #expect(!wheel.advance(to: now + Int64(wait)).isEmpty)
        }
    }

    @Test func `the wait is never negative when the loop is late`() {
        var wheel = TimerWheel(now: 0)
        _ = wheel.add(token(1), at: 16)
        #expect(wheel.wait(from: 0) == 16)
        #expect(wheel.wait(from: 15) == 1)
        #expect(wheel.wait(from: 16) == 0)
        #expect(wheel.wait(from: 5000) == 0)
    }

    @Test func `the last tick of the horizon is exact and one past it comes sooner`() {
        var wheel = TimerWheel(now: 0)
        let last = horizonTicks * tick
        #expect(wheel.add(token(1), at: last) == last)
        #expect(wheel.add(token(2), at: last + 1) == last)
        #expect(wheel.add(token(3), at: .max / 2) == last)
        #expect(wheel.wait(from: 0) == Int32(last))
        #expect(wheel.advance(to: last - 1).isEmpty)
        let due = wheel.advance(to: last)
        #expect(due.map(\.token) == [token(1), token(2), token(3)])
        #expect(due.allSatisfy { $0.time == last })
    }

    @Test func `a deadline beyond the horizon is reached in several steps`() {
        var wheel = TimerWheel(now: 3)
        let deadline: Int64 = 60_001
        var scheduled = wheel.add(token(9), at: deadline)
        var steps = 0
        var now: Int64 = 3
        while true {
            now += Int64(wheel.wait(from: now))
            let due = wheel.advance(to: now)
            #expect(due == [TimerWheel.Entry(token: token(9), time: scheduled)])
            steps += 1
            if now >= deadline { break }
            #expect(scheduled < deadline)
            scheduled = wheel.add(token(9), at: deadline)
        }
        #expect(scheduled == deadline)
        #expect(now < deadline + tick)
        #expect(steps == 8)
    }

    @Test(arguments: [1024, 1025, 5000, 1_000_000] as [Int64])
    func `after a long sleep every slot is handed out once`(ticks: Int64) {
        var wheel = TimerWheel(now: 800)
        for slot in 0..<Int(horizonTicks) {
            _ = wheel.add(token(slot), at: 800 + Int64(slot + 1) * tick)
        }
        #expect(wheel.count == Int(horizonTicks))
        let due = wheel.advance(to: 800 + ticks * tick)
        #expect(due.count == Int(horizonTicks))
        #expect(Set(due.map(\.token)).count == due.count)
        #expect(wheel.count == 0)
        #expect(wheel.wait(from: 800 + ticks * tick) == -1)
        #expect(wheel.advance(to: 800 + (ticks + 3000) * tick).isEmpty)
    }

    @Test func `entries come in the order of their ticks`() {
        var wheel = TimerWheel(now: 0)
        for (slot, time) in [500, 20, 300, 21, 8].enumerated() {
            _ = wheel.add(token(slot), at: Int64(time))
        }
        #expect(wheel.advance(to: 1000).map(\.time) == [8, 20, 21, 300, 500])
    }

    @Test func `time that goes back or does not advance fires nothing twice`() {
        var wheel = TimerWheel(now: 80)
        _ = wheel.add(token(1), at: 88)
        #expect(wheel.advance(to: 88).count == 1)
        #expect(wheel.advance(to: 88).isEmpty)
        #expect(wheel.advance(to: 0).isEmpty)
        // The wheel did not go back with the clock: 89 is due at 96.
        _ = wheel.add(token(2), at: 89)
        #expect(wheel.advance(to: 95).isEmpty)
        #expect(wheel.advance(to: 96).count == 1)
    }

    @Test func `one token may have several entries`() {
        var wheel = TimerWheel(now: 0)
        for time in [8, 16, 16] as [Int64] { _ = wheel.add(token(1), at: time) }
        #expect(wheel.count == 3)
        #expect(wheel.advance(to: 8).map(\.time) == [8])
        #expect(wheel.advance(to: 16).map(\.time) == [16, 16])
        #expect(wheel.count == 0)
    }

    @Test func `random entries are handed out as by a model`() {
        var random = SeededRandom(seed: 42)
        var now: Int64 = 1_000_000
        var wheel = TimerWheel(now: now)
        var waiting: [Int: Int64] = [:]
        for slot in 0..<20_000 {
            let time = now + .random(in: 0...8000, using: &random)
            #expect(wheel.add(token(slot), at: time) == time)
            waiting[slot] = time
            guard slot % 5 == 0 else { continue }
            now += .random(in: 0...40, using: &random)
            for entry in wheel.advance(to: now) {
                #expect(entry.time <= now)
                #expect(waiting.removeValue(forKey: entry.token.slot) == entry.time)
            }
            #expect(wheel.count == waiting.count)
        }
        #expect(waiting.values.allSatisfy { $0 > now - 2 * tick })
        #expect(wheel.advance(to: now + 10_000).count == waiting.count)
    }
}
