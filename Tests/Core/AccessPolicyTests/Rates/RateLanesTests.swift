import HTTPCore
import Testing

@testable import AccessPolicy

private let second: Int64 = 1_000_000_000

/// Streams that always have something to send, in one direction of one limit.
private final class Streams {
    struct Stream {
        let client: Int
        var grant: ByteGrant?
        var waits = false
        var late: Int64 = 0
        var passed = 0
    }

    var state = RateState<Int>()
    let limits: RateLimits
    var streams: [Stream]

    init(_ limits: RateLimits, clients: [Int]) {
        self.limits = limits
        streams = clients.map { Stream(client: $0) }
    }

    /// - Parameter lateness: how late timers are, in nanoseconds.
    func run(for time: Int64, lateness: Int64 = 0) {
        var now: Int64 = 0
        while now < time {
            for index in streams.indices {
                let client = IPNetwork(client: .v4(UInt32(streams[index].client)))
                while true {
                    if let grant = streams[index].grant {
                        if streams[index].waits {
                            guard grant.time + lateness <= now else { break }
                            state.arrive(.down, for: client)
                            streams[index].late = now - grant.time
                        }
                        streams[index].passed += grant.bytes
                    }
                    let grant = state.draw(
                        .down, limits, for: client, wanted: 64 << 10,
                        late: streams[index].late, RateMoment(now: now))
                    streams[index].late = max(0, streams[index].late - (grant?.cost ?? 0))
                    streams[index].grant = grant
                    streams[index].waits = grant.map { $0.time > now } ?? false
                    guard grant != nil else { break }
                }
            }
            now += 4_000_000
        }
    }

    var total: Int { streams.reduce(0) { $0 + $1.passed } }
    func passed(by client: Int) -> Int {
        streams.filter { $0.client == client }.reduce(0) { $0 + $1.passed }
    }
}

@Suite("Bytes within a limit")
struct RateLanesTests {
    private func shared(_ speed: Int) -> RateLimits {
        var limits = RateLimits()
        limits.basis = .rule
        limits.down = speed
        return limits
    }

    @Test(arguments: [1000, 10 << 10, 256 << 10, 1 << 20, 100 << 20], [1, 10, 1000])
    func `pass at their rate, to one in fifty in ten seconds`(speed: Int, clients: Int) {
        let streams = Streams(shared(speed), clients: Array(0..<clients))
        streams.run(for: 10 * second)
        let expected = 10 * speed
        #expect(abs(streams.total - expected) <= expected / 50, "\(streams.total)")
    }

    @Test(arguments: [20, 200])
    func `timers that are late cost nothing`(milliseconds: Int64) {
        let streams = Streams(shared(1 << 20), clients: [1])
        streams.run(for: 10 * second, lateness: milliseconds * 1_000_000)
        #expect(abs(streams.total - 10 << 20) <= (10 << 20) / 50 + 1 << 18, "\(streams.total)")
    }

    @Test func `clients get the same, however many streams they have`() {
        let streams = Streams(
            shared(1 << 20), clients: [Int](repeating: 1, count: 50) + [2, 3, 3])
        streams.run(for: 10 * second)
        let shares = [1, 2, 3].map { streams.passed(by: $0) }
        let fair = (10 << 20) / 3
        for share in shares { #expect(abs(share - fair) < fair / 4, "\(shares)") }
        #expect(abs(streams.total - 10 << 20) <= (10 << 20) / 50)
    }

    @Test func `what is not used is given back`() {
        let limits = shared(1000)
        let state = Box(RateState<Int>())
        let client = IPNetwork(client: .v4(1))
        let moment = RateMoment(now: 0)
        let grants = (0..<3).compactMap { _ in
            state.value.draw(.down, limits, for: client, wanted: 1, moment)
        }
        #expect(grants.map(\.bytes) == [100, 100, 100])
        #expect(grants.map(\.time) == [-50_000_000, 50_000_000, 150_000_000])
        #expect(state.value.lanes[.down].waiting == 2)
        state.value.leave(.down, limits, for: client, unused: 100, waits: true, moment)
        state.value.leave(.down, limits, for: client, unused: 100, waits: true, moment)
        let again = state.value.draw(.down, limits, for: client, wanted: 1, moment)
        #expect(again == ByteGrant(bytes: 100, time: 50_000_000, cost: 100_000_000))
        state.value.arrive(.down, for: client)
        #expect(state.value.lanes[.down].waiting == 0)
        #expect(!state.value.lanes.isAtRest(at: 199_999_999))
        #expect(state.value.lanes.isAtRest(at: 200_000_000))
    }

    @Test func `the directions are apart`() {
        var limits = shared(1000)
        limits.up = 2000
        let state = Box(RateState<Int>())
        let client = IPNetwork(client: .v4(1))
        let moment = RateMoment(now: 0)
        let down = state.value.draw(.down, limits, for: client, wanted: 1, moment)
        let up = state.value.draw(.up, limits, for: client, wanted: 1, moment)
        #expect(down?.time == -50_000_000)
        #expect(up == ByteGrant(bytes: 200, time: -50_000_000, cost: 100_000_000))
    }

    @Test func `a day has no more than its bytes`() {
        var limits = RateLimits()
        limits.day = 1_000_000
        let streams = Streams(limits, clients: [1, 1, 2])
        streams.run(for: 8_000_000)
        let given = streams.total + streams.streams.reduce(0) { $0 + ($1.grant?.bytes ?? 0) }
        #expect(given == 1_000_000)
        let client = IPNetwork(client: .v4(1))
        let moment = RateMoment(now: 0)
        #expect(
            streams.state.draw(.up, limits, for: client, wanted: 1, moment) == nil)
        streams.state.leave(.down, limits, for: client, unused: 7, waits: false, moment)
        let grant = streams.state.draw(.up, limits, for: client, wanted: 1, moment)
        #expect(grant == ByteGrant(bytes: 1, time: 0, cost: 0))
    }

    @Test func `what is only counted is found to exceed`() {
        let limits = shared(1000)
        let state = Box(RateState<Int>())
        func exceeds(_ bytes: Int, since began: Int64, at now: Int64) -> Bool {
            state.value.meter(.down, limits, bytes: bytes, since: began, RateMoment(now: now))
        }
        #expect(!exceeds(10_000, since: -10 * second, at: 0))
        #expect(exceeds(10_000, since: 0, at: second))
        #expect(!exceeds(900, since: second, at: 2 * second))
        var daily = RateLimits()
        daily.day = 100
        let answers = [100, 1, 0].map { bytes in
            state.value.meter(.up, daily, bytes: bytes, since: 0, RateMoment(now: 0))
        }
        #expect(answers == [false, true, false])
    }
}
