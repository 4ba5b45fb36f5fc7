import TestSupport
import Testing

@testable import EventLoop

/// A model of a timer wheel: a list that is searched completely.
private struct NaiveWheel {
    private(set) var entries: [(tick: Int64, entry: TimerWheel.Entry)] = []
    private var current: Int64

    init(now: Int64) { current = now / TimerWheel.tickMilliseconds }

    var earliest: Int64? { entries.map(\.tick).min() }

    mutating func add(_ token: Token, at time: Int64) -> Int64 {
        let length = TimerWheel.tickMilliseconds
        let horizon = current + Int64(TimerWheel.slotCount) - 1
        let wanted = time % length == 0 ? time / length : time / length + 1
        let due = wanted > horizon ? horizon * length : time
        let tick = max(current + 1, min(wanted, horizon))
        entries.append((tick, TimerWheel.Entry(token: token, time: due)))
        return due
    }

    /// By tick; within one in the order in which they were added.
    mutating func advance(to now: Int64) -> [TimerWheel.Entry] {
        current = max(current, now / TimerWheel.tickMilliseconds)
        let due = entries.enumerated().filter { $0.element.tick <= current }
        entries.removeAll { $0.tick <= current }
        return due.sorted { ($0.element.tick, $0.offset) < ($1.element.tick, $1.offset) }
            .map(\.element.entry)
    }

    func wait(from now: Int64) -> Int32 {
        guard let earliest else { return -1 }
        return Int32(max(0, earliest * TimerWheel.tickMilliseconds - now))
    }
}

/// The parameters of a random run: what a wheel encounters depends much on the distances.
struct WheelLoad: CustomTestStringConvertible, Sendable {
    let name: String
    /// How far ahead of the clock entries are, in milliseconds.
    let ahead: ClosedRange<Int64>
    /// How far the clock advances at once.
    let step: ClosedRange<Int64>
    /// How many entries are added between two readings of the clock.
    let burst: ClosedRange<Int>

    var testDescription: String { name }

    static let span = Int64(TimerWheel.slotCount) * TimerWheel.tickMilliseconds

    static let all = [
        WheelLoad(name: "dense", ahead: 0...400, step: 0...20, burst: 0...8),
        WheelLoad(name: "one slot", ahead: 30...33, step: 0...3, burst: 0...20),
        WheelLoad(name: "sparse", ahead: 1...span, step: 0...900, burst: 0...1),
        WheelLoad(
            name: "at the horizon", ahead: (span - 20)...(span + 20), step: 0...500, burst: 0...2),
        WheelLoad(name: "far beyond it", ahead: 1...(20 * span), step: 0...3000, burst: 0...2),
        WheelLoad(name: "long idle", ahead: 1...span, step: 1...(5 * span), burst: 0...40),
        WheelLoad(name: "overdue", ahead: -500...60, step: 0...30, burst: 0...4),
    ]
}

@Suite("The timer wheel beside a model")
struct TimerWheelModelTests {
    @Test(arguments: WheelLoad.all, [1, 2, 3, 4] as [UInt64])
    func `the wheel does as the model does`(load: WheelLoad, seed: UInt64) {
        var random = SeededRandom(seed: seed)
        // Starts anywhere in the wheel, so that runs wrap around at different places.
        var now = Int64.random(in: 0...(3 * WheelLoad.span), using: &random)
        var wheel = TimerWheel(now: now)
        var model = NaiveWheel(now: now)
        for round in 0..<1500 {
            let place: Comment = "\(load.name), seed \(seed), round \(round), at \(now)"
            for number in 0..<Int.random(in: load.burst, using: &random) {
                let token = Token(slot: round, generation: UInt32(number))
                let time = now + .random(in: load.ahead, using: &random)
                #expect(wheel.add(token, at: time) == model.add(token, at: time), place)
            }
            #expect(wheel.wait(from: now) == model.wait(from: now), place)
            now += step(of: load, waiting: wheel.wait(from: now), using: &random)
            var due = FIFO<TimerWheel.Entry>()
            wheel.advance(to: now, into: &due)
            let expected = model.advance(to: now)
            guard due.count == expected.count, wheel.count == model.entries.count else {
                Issue.record("\(due.count) entries instead of \(expected.count): \(place)")
                return
            }
            for entry in expected { #expect(due.popFirst() == entry, place) }
            #expect(wheel.wait(from: now) == model.wait(from: now), place)
        }
    }

    /// As loops do it: often exactly the time of the wait, or any other.
    private func step(
        of load: WheelLoad, waiting wait: Int32, using random: inout SeededRandom
    ) -> Int64 {
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where wait > 0: Int64(wait)
        case 1 where wait > 0: Int64(wait) - 1
        case 2: 0
        default: .random(in: load.step, using: &random)
        }
    }

    /// A loop that sleeps for the returned time wakes up only when something is due.
    @Test(arguments: [5, 6, 7] as [UInt64])
    func `no wait ends with nothing due`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var now: Int64 = 777
        var wheel = TimerWheel(now: now)
        for round in 0..<300 {
            for slot in 0..<Int.random(in: 1...5, using: &random) {
                let time = now + .random(in: 1...(3 * WheelLoad.span), using: &random)
                _ = wheel.add(Token(slot: slot, generation: 0), at: time)
            }
            while wheel.count > 0 {
                let wait = wheel.wait(from: now)
                now += Int64(wait)
                var due = FIFO<TimerWheel.Entry>()
                wheel.advance(to: now, into: &due)
                #expect(wait > 0 && !due.isEmpty, "seed \(seed), round \(round), at \(now)")
                guard !due.isEmpty else { return }
            }
        }
    }
}

@Suite("Occupied slots of a timer wheel")
struct OccupiedSlotsTests {
    @Test func `the distance is to the next one going round`() {
        var random = SeededRandom(seed: 11)
        for size in [0, 1, 2, 3, 30, 1000] {
            var occupied = OccupiedSlots()
            var expected = Set<Int>()
            for _ in 0..<size {
                let slot = Int.random(in: 0..<OccupiedSlots.count, using: &random)
                occupied.insert(slot)
                expected.insert(slot)
                let other = Int.random(in: 0..<OccupiedSlots.count, using: &random)
                occupied.remove(other)
                expected.remove(other)
            }
            for slot in 0..<OccupiedSlots.count {
                let found = (1...OccupiedSlots.count)
                    .first { expected.contains((slot + $0) % OccupiedSlots.count) }
                #expect(occupied.distance(from: slot) == found, "\(size) slots, from \(slot)")
            }
        }
    }
}
