import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("Dividing requests among servers")
struct ServerBalanceTests {
    /// A generator with a seed.
    private struct Seeded: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 1
            return mixed(state)
        }
    }

    private static func all(_ count: Int) -> ServerMask { ServerMask(0..<count) }

    // MARK: Which servers

    @Test func `a mask has the indices that it was given, in order`() {
        let mask = ServerMask([63, 0, 5])
        #expect(Array(mask) == [0, 5, 63])
        #expect(mask.count == 3 && mask.first == 0 && !mask.isEmpty)
        #expect(mask.contains(63) && !mask.contains(1))
        #expect(mask.without(ServerMask([5])) == ServerMask([0, 63]))
        #expect(ServerMask().isEmpty && Array(ServerMask()).isEmpty)
    }

    /// Every combination of two servers' states, compared with the rule in words.
    @Test func `servers are asked before backups, and ejected ones before none`() {
        let states: [ServerGroups.Server] = [true, false].flatMap { isUp in
            [true, false].flatMap { isEjected in
                [true, false].flatMap { isBackup in
                    [true, false].flatMap { isFull in
                        [0, 1].map { weight in
                            ServerGroups.Server(
                                isUp: isUp, isEjected: isEjected, isBackup: isBackup,
                                isFull: isFull, weight: weight)
                        }
                    }
                }
            }
        }
        for one in states {
            for other in states {
                var groups = ServerGroups()
                groups.add(one, at: 0)
                groups.add(other, at: 1)
                let servers = [one, other]
                let alive = [0, 1].filter { servers[$0].isUp && servers[$0].weight > 0 }
                let healthy = alive.filter { !servers[$0].isEjected }
                let first = healthy.filter { !servers[$0].isBackup }
                let group = first.isEmpty ? healthy.isEmpty ? alive : healthy : first
                let expected =
                    group.allSatisfy { servers[$0].isFull }
                    ? group : group.filter { !servers[$0].isFull }
                // Of ejected ones, all are asked.
                let asked =
                    healthy.isEmpty
                    ? alive.filter { servers[$0].isEjected } : expected
                let free = asked.filter { !servers[$0].isFull }
                #expect(
                    groups.candidates(besides: ServerMask())
                        == ServerMask(free.isEmpty ? asked : free))
                let bindable = [0, 1].filter { servers[$0].isUp && !servers[$0].isEjected }
                #expect(groups.bindable == ServerMask(bindable))
                #expect(groups.candidates(besides: ServerMask([0, 1])).isEmpty)
            }
        }
    }

    @Test func `a server that was tried is not asked again, even by its backups`() {
        var groups = ServerGroups()
        groups.add(.init(), at: 0)
        groups.add(.init(isBackup: true), at: 1)
        groups.add(.init(isEjected: true), at: 2)
        var tried = ServerMask()
        for expected in [0, 1, 2] {
            let candidates = groups.candidates(besides: tried)
            #expect(candidates == ServerMask([expected]))
            tried.insert(expected)
        }
        #expect(groups.candidates(besides: tried).isEmpty)
    }

    // MARK: Round robin

    @Test(arguments: [[1, 1], [5, 1, 1], [1, 2, 3, 4], [256, 1], [7]])
    func `each server gets its share of every stretch of requests`(weights: [Int]) {
        let sum = weights.reduce(0, +)
        for seed in 0..<20 as Range<UInt64> {
            var turns = SmoothRoundRobin(weights: weights, random: seed)
            var counts = weights.map { _ in 0 }
            for number in 1...(3 * sum) {
                counts[turns.next(of: Self.all(weights.count), weights: weights)] += 1
                for (count, weight) in zip(counts, weights) {
                    // Never more than two turns and a half away from the exact share.
                    #expect(abs(2 * (count * sum - number * weight)) <= 5 * sum)
                }
            }
        }
    }

    @Test func `the turns of a heavy server are spread`() {
        var turns = SmoothRoundRobin(weights: [2, 1, 1], random: 1)
        var last = -1
        var longest = 0
        var run = 0
        for _ in 0..<400 {
            let next = turns.next(of: Self.all(3), weights: [2, 1, 1])
            run = next == last ? run + 1 : 1
            longest = max(longest, run)
            last = next
        }
        #expect(longest <= 2)
    }

    @Test func `only candidates get turns`() {
        var turns = SmoothRoundRobin(weights: [1, 1, 1, 1], random: 9)
        for _ in 0..<100 {
            #expect(turns.next(of: ServerMask([2]), weights: [1, 1, 1, 1]) == 2)
            #expect([1, 3].contains(turns.next(of: ServerMask([1, 3]), weights: [9, 1, 9, 1])))
        }
    }

    // MARK: Least requests

    @Test(
        arguments: [
            ([0, 0, 0], [1, 1, 1], [0, 1, 2]), ([1, 0, 2], [1, 1, 1], [1]),
            ([1, 1, 2], [1, 1, 1], [0, 1]), ([0, 0], [2, 1], [0, 1]), ([1, 0], [2, 1], [1]),
            ([1, 1], [2, 1], [0]), ([2, 1], [2, 1], [0, 1]), ([3, 1], [2, 1], [1]),
            ([3, 2], [2, 1], [0]), ([-1, 0], [1, 1], [0, 1]),
        ])
    func `the least loaded servers are those with the fewest requests for their weight`(
        requests: [Int], weights: [Int], expected: [Int]
    ) {
        let least = leastLoaded(of: Self.all(requests.count), weights: weights) { requests[$0] }
        #expect(least == ServerMask(expected))
    }

    @Test func `idle servers get their shares`() {
        let weights = [2, 1, 1, 1]
        var counts = [0, 0, 0, 0]
        var turns = SmoothRoundRobin(weights: weights, random: 5)
        for _ in 0..<500 {
            let least = leastLoaded(of: Self.all(4), weights: weights) { _ in 0 }
            counts[turns.next(of: least, weights: weights)] += 1
        }
        for (count, weight) in zip(counts, weights) {
            #expect(abs(count - weight * 100) <= 2, "\(counts)")
        }
    }

    /// Requests that last equally long.
    @Test func `servers under load have requests in proportion to their weights`() {
        let weights = [4, 2, 1]
        var load = [0, 0, 0]
        var counts = [0, 0, 0]
        var turns = SmoothRoundRobin(weights: weights, random: 3)
        var under: [Int] = []
        for _ in 0..<7_000 {
            let least = leastLoaded(of: Self.all(3), weights: weights) { load[$0] }
            let chosen = turns.next(of: least, weights: weights)
            counts[chosen] += 1
            load[chosen] += 1
            under.append(chosen)
            if under.count > 21 { load[under.removeFirst()] -= 1 }
        }
        #expect(abs(counts[0] - 4000) < 200 && abs(counts[1] - 2000) < 200, "\(counts)")
    }

    // MARK: Hashing

    @Test func `the logarithm is that of the mathematicians`() {
        for (number, expected) in [
            (1.0, 0.0), (0.5, -0.693147180559945), (0.1, -2.302585092994046),
            (1e-15, -34.53877639491069), (0.999999, -1.0000005000003334e-06),
            (2.0, 0.6931471805599),
        ] {
            #expect(abs(naturalLogarithm(number) - expected) < 1e-8)
        }
    }

    @Test(arguments: [[1, 1, 1], [3, 1], [10, 5, 1]])
    func `values are divided among servers in proportion to their weights`(weights: [Int]) {
        var random = Seeded(state: 7)
        let seeds = weights.indices.map { mixed(FNV1a.hash("http://\($0).test")) }
        var counts = weights.map { _ in 0 }
        let values = 20_000
        for _ in 0..<values {
            let value = random.next()
            counts[
                rendezvous(value, of: Self.all(weights.count), weights: weights, seeds: seeds)] += 1
        }
        for (count, weight) in zip(counts, weights) {
            let expected = values * weight / weights.reduce(0, +)
            #expect(abs(count - expected) < values / 50, "\(counts)")
        }
    }

    @Test func `if a server leaves, only its values move`() {
        let seeds = (0..<8).map { mixed(FNV1a.hash("http://\($0).test")) }
        let weights = [Int](repeating: 1, count: 8)
        for value in 0..<2_000 as Range<UInt64> {
            let before = rendezvous(value, of: Self.all(8), weights: weights, seeds: seeds)
            for gone in 0..<8 {
                let left = Self.all(8).without(ServerMask([gone]))
                let after = rendezvous(value, of: left, weights: weights, seeds: seeds)
                #expect(after == before || before == gone)
                #expect(after != gone)
            }
        }
    }

    @Test func `a larger weight takes values over and gives none away`() {
        let seeds = (0..<4).map { mixed(FNV1a.hash("http://\($0).test")) }
        for value in 0..<2_000 as Range<UInt64> {
            let before = rendezvous(
                value, of: Self.all(4), weights: [1000, 1000, 1000, 1000], seeds: seeds)
            let after = rendezvous(
                value, of: Self.all(4), weights: [1000, 2000, 1000, 1000], seeds: seeds)
            #expect(after == before || after == 1)
        }
    }

    // MARK: Slow start

    @Test(
        arguments: [
            (0, 5_000, 2_000), (1_000, 1_000, 200), (1_000, 2_000, 200), (1_000, 6_000, 1_000),
            (1_000, 10_999, 1_998), (1_000, 11_000, 2_000), (1_000, 99_000, 2_000),
        ] as [(Int64, Int64, Int)])
    func `a server that came back gets its share little by little`(
        since: Int64, now: Int64, expected: Int
    ) {
        let start = SlowStart(milliseconds: 10_000)
        #expect(start.weight(2, since: since, at: now) == expected)
        #expect(SlowStart(milliseconds: 0).weight(2, since: since, at: now) == 2_000)
        #expect(start.weight(0, since: 0, at: now) == 0)
    }
}
