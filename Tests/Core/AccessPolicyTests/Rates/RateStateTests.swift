import HTTPCore
import Testing

@testable import AccessPolicy

private let second: Int64 = 1_000_000_000

private func network(_ number: Int) -> IPNetwork {
    IPNetwork(client: .v4(0x0A00_0000 + UInt32(number)))
}

private func limits(_ change: (inout RateLimits) -> Void) -> RateLimits {
    var limits = RateLimits()
    change(&limits)
    return limits
}

/// A state whose waiters are their tickets.
private final class Asking {
    var state = RateState<UInt64>()
    var tickets: UInt64 = 0
    let limits: RateLimits

    init(_ limits: RateLimits) { self.limits = limits }

    func ask(_ client: Int = 1, at now: Int64, day: Int64 = 0) -> String {
        tickets += 1
        let moment = RateMoment(now: now, day: day, secondsLeft: 100)
        switch state.ask(limits, from: network(client), ticket: tickets, tickets, moment) {
        case .admitted: return "yes"
        case .waits(let time): return "waits \(time)"
        case .refused(let refusal): return "\(refusal.kind) \(refusal.retrySeconds)"
        }
    }

    func advance(at now: Int64) -> [UInt64] {
        state.advance(limits, RateMoment(now: now)).ready
    }

    func leave(_ ticket: UInt64) -> Bool {
        state.leave(limits, from: network(1), ticket: ticket)
    }

    func end(_ client: Int = 1) { state.end(from: network(client)) }
}

@Suite("Requests within a limit")
struct RateStateTests {
    @Test func `pass at their rate after the burst`() {
        let asking = Asking(
            limits {
                $0.requests = RequestRate(count: 2, per: .second)
                $0.burst = 3
            })
        #expect((0..<4).map { _ in asking.ask(at: 0) } == ["yes", "yes", "yes", "requests 1"])
        #expect(asking.ask(at: second / 2 - 1) == "requests 1")
        #expect(asking.ask(at: second / 2) == "yes")
        #expect(asking.ask(at: second / 2) == "requests 1")
    }

    @Test func `the time to ask again is that of the rate`() {
        let asking = Asking(limits { $0.requests = RequestRate(count: 2, per: .minute) })
        #expect(asking.ask(at: 0) == "yes")
        #expect(asking.ask(at: 0) == "requests 30")
        #expect(asking.ask(at: 29 * second) == "requests 1")
        #expect(asking.ask(at: 30 * second) == "yes")
    }

    @Test(arguments: [(1, 1), (50, 50), (120, 2), (3600, 1)])
    func `the burst is that of a second unless it is set`(count: Int, expected: Int) {
        let unit: RequestRate.Unit =
            switch count {
            case 120: .minute
            case 3600: .hour
            default: .second
            }
        let asking = Asking(limits { $0.requests = RequestRate(count: count, per: unit) })
        var admitted = 0
        while asking.ask(at: 0) == "yes" { admitted += 1 }
        #expect(admitted == expected)
    }

    @Test func `so many are under way at once`() {
        let asking = Asking(limits { $0.exchanges = 2 })
        #expect((0..<3).map { _ in asking.ask(at: 0) } == ["yes", "yes", "exchanges 1"])
        asking.end()
        #expect((0..<2).map { _ in asking.ask(at: 0) } == ["yes", "exchanges 1"])
    }

    @Test func `none pass when the day is used up until it is over`() {
        let asking = Asking(limits { $0.day = 1000 })
        #expect(asking.ask(at: 0) == "yes")
        asking.state.quota.use(1000, on: 0)
        #expect(asking.ask(at: 0) == "day 100")
        #expect(asking.ask(at: 0, day: 1) == "yes")
        asking.state.quota.use(999, on: 1)
        #expect(asking.ask(at: 0, day: 1) == "yes")
    }

    @Test func `a day that comes again after a step of the clock is not another one`() {
        var quota = DailyQuota()
        quota.use(10, on: 5)
        #expect(quota.used(on: 4) == 10)
        quota.use(10, on: 4)
        #expect(quota.used(on: 5) == 20)
        #expect(quota.used(on: 6) == 0)
        quota.use(.max, on: 5)
        #expect(quota.used(on: 5) == .max)
        #expect(quota.left(of: 100, on: 5) == 0)
        quota.giveBack(.max, on: 5)
        #expect(quota.left(of: 100, on: 5) == 100)
    }

    @Test func `a state is at rest when nothing would be lost with it`() {
        let asking = Asking(
            limits {
                $0.requests = RequestRate(count: 1, per: .second)
                $0.day = 100
            })
        func rests(_ now: Int64, day: Int64 = 0) -> Bool {
            asking.state.isAtRest(RateMoment(now: now, day: day))
        }
        #expect(rests(0))
        #expect(asking.ask(at: 0) == "yes")
        #expect(!rests(0) && !rests(second))
        asking.end()
        #expect(!rests(second - 1) && rests(second))
        asking.state.quota.use(1, on: 0)
        #expect(!rests(second) && rests(second, day: 1))
    }
}

@Suite("Clients that share a limit")
struct SharedRateTests {
    /// How many requests each client gets in ten seconds, if one asks as often as it can and the
    /// others so many times a second.
    private func shares(_ limits: RateLimits, others: [Int]) -> [Int] {
        let asking = Asking(limits)
        var taken = [Int](repeating: 0, count: others.count + 1)
        for step in 0..<10_000 {
            let now = Int64(step) * 1_000_000
            for _ in 0..<5 where asking.ask(0, at: now) == "yes" {
                taken[0] += 1
                asking.end(0)
            }
            for (index, rate) in others.enumerated()
            where rate > 0 && step % (1000 / rate) == index % 7
                && asking.ask(index + 1, at: now) == "yes"
            {
                taken[index + 1] += 1
                asking.end(index + 1)
            }
        }
        return taken
    }

    private var shared: RateLimits {
        limits {
            $0.basis = .rule
            $0.requests = RequestRate(count: 50, per: .second)
            $0.burst = 20
        }
    }

    @Test func `one alone has all of it`() {
        #expect((500...520).contains(shares(shared, others: [])[0]))
    }

    @Test func `one that asks for more than its share leaves others theirs`() {
        let taken = shares(shared, others: [15, 10])
        #expect(taken[1] >= 140 && taken[2] >= 95, "\(taken)")
        #expect((500...520).contains(taken.reduce(0, +)), "\(taken)")
    }

    @Test func `exchanges at once are shared when they become scarce`() {
        let asking = Asking(
            limits {
                $0.basis = .rule
                $0.exchanges = 8
            })
        #expect((0..<9).map { _ in asking.ask(1, at: 0) }.filter { $0 == "yes" }.count == 8)
        #expect(asking.ask(2, at: 0) == "exchanges 1")
        // What becomes free is not taken by who has more than half of it.
        asking.end(1)
        #expect(asking.ask(1, at: 0) == "exchanges 1")
        #expect(asking.ask(2, at: 0) == "yes")
    }

    @Test func `more clients than are told apart still have a share each`() {
        let members = Box(RateMembers())
        for number in 0...RateMembers.limit {
            #expect(members.value.note(network(number), within: 10, at: 0) <= RateMembers.limit)
        }
        #expect(members.value.count == RateMembers.limit)
        for number in [RateMembers.limit + 1, RateMembers.limit + 2] {
            let client = network(number)
            let count = members.value.note(client, within: 10, at: 0)
            let share = RateShare(interval: 1, burst: 1, among: count)
            #expect(members.value.hasShare(client, ofExchanges: 2 * count, among: count))
            for _ in 0..<2 { members.value.admit(client, share, at: 0) }
            #expect(!members.value.hasShare(client, ofExchanges: 2 * count, among: count))
            #expect(members.value.wait(client, share, at: 0) == 2 * Int64(count))
            members.value.end(client)
            #expect(members.value.hasShare(client, ofExchanges: 2 * count, among: count))
        }
        #expect(members.value.note(network(1), within: 10, at: 10) <= 3)
    }

    @Test func `whoever has the most networks loses their own shares`() {
        let members = Box(RateMembers())
        let share = RateShare(interval: 1, burst: 1, among: 1)
        let neighbours = (0..<100).map { network(0x10_0000 + 256 * $0) }
        for client in neighbours {
            _ = members.value.note(client, within: 10, at: 0)
            members.value.admit(client, share, at: 0)
        }
        // One subscriber with an IPv6 /48.
        for number in 0..<(3 * RateMembers.limit) {
            let client = IPNetwork(client: .v6(0x2001_0DB8_0001_0000 + UInt64(number), 1))
            _ = members.value.note(client, within: 10, at: 0)
        }
        #expect(members.value.count == RateMembers.limit)
        for client in neighbours {
            #expect(!members.value.hasShare(client, ofExchanges: 1, among: 1))
            #expect(members.value.wait(client, share, at: 0) > 0)
        }
    }
}

@Suite("Requests that wait")
struct RateTurnTests {
    private var delaying: RateLimits {
        limits {
            $0.basis = .rule
            $0.requests = RequestRate(count: 10, per: .second)
            $0.burst = 1
            $0.excess = .delay
        }
    }

    @Test func `have their turn at the rate`() {
        let asking = Asking(delaying)
        #expect(asking.ask(at: 0) == "yes")
        #expect(asking.ask(at: 0) == "waits 100000000")
        #expect(asking.ask(at: 0) == "waits 200000000")
        #expect(asking.advance(at: second / 10 - 1) == [])
        #expect(asking.advance(at: second / 10) == [2])
        // Nobody overtakes them.
        #expect(asking.ask(at: second / 10) == "waits 200000000")
        #expect(asking.advance(at: second / 5) == [3])
        #expect(asking.advance(at: second / 5) == [])
        #expect(asking.advance(at: second) == [4])
    }

    @Test func `clients take turns`() {
        let asking = Asking(delaying)
        #expect(asking.ask(1, at: 0) == "yes")
        for _ in 0..<4 { #expect(asking.ask(1, at: 0).hasPrefix("waits")) }
        #expect(asking.ask(2, at: 0).hasPrefix("waits"))
        #expect(asking.ask(3, at: 0).hasPrefix("waits"))
        let order = (1...7).flatMap { asking.advance(at: Int64($0) * second / 10) }
        #expect(order == [2, 6, 7, 3, 4, 5])
    }

    @Test func `lose nothing when they are late`() {
        let asking = Asking(delaying)
        #expect(asking.ask(at: 0) == "yes")
        for _ in 0..<5 { #expect(asking.ask(at: 0).hasPrefix("waits")) }
        // The first is due at 0.1 s, the second at 0.2, the third at 0.3.
        #expect(asking.advance(at: second / 10 + 90_000_000) == [2])
        #expect(asking.advance(at: second / 5) == [3])
        #expect(asking.advance(at: second / 2 + 1) == [4, 5, 6])
        #expect(asking.ask(at: second / 2 + 1) == "waits 99999999")
    }

    @Test func `too many do not, and a client has a quarter once half do`() {
        let asking = Asking(
            limits {
                $0.basis = .rule
                $0.requests = RequestRate(count: 1000, per: .second)
                $0.burst = 1
                $0.excess = .delay
            })
        let limit = RateState<UInt64>.waitingLimit
        #expect(asking.ask(1, at: 0) == "yes")
        #expect((0..<limit).count { _ in asking.ask(1, at: 0).hasPrefix("waits") } == limit / 2)
        #expect(asking.ask(2, at: 0).hasPrefix("waits"))
        #expect(asking.ask(1, at: 0) == "requests 1")
    }

    @Test func `none waits for too long`() {
        let asking = Asking(
            limits {
                $0.requests = RequestRate(count: 1, per: .second)
                $0.excess = .delay
            })
        let answers = (0..<13).map { _ in asking.ask(at: 0) }
        #expect(answers.count { $0.hasPrefix("waits") } == 10)
        #expect(answers.last == "requests 11")
    }

    @Test func `proceed when an exchange ends`() {
        let asking = Asking(
            limits {
                $0.exchanges = 1
                $0.excess = .delay
            })
        #expect(asking.ask(at: 0) == "yes")
        #expect(asking.ask(at: 0) == "waits \(RateState<UInt64>.longestWait)")
        #expect(asking.advance(at: 5) == [])
        asking.end()
        #expect(asking.state.next == 2)
        #expect(asking.advance(at: 5) == [2])
        #expect(asking.state.waitingCount == 0)
    }

    @Test func `may leave`() {
        let asking = Asking(delaying)
        for _ in 0..<3 { _ = asking.ask(at: 0) }
        #expect(asking.leave(2))
        #expect(!asking.leave(2))
        #expect(asking.advance(at: second / 10) == [3])
        #expect(!asking.leave(3))
    }
}
