import TestSupport
import Testing

@testable import RedisProtocol

@Suite("The circuit breaker")
struct CircuitBreakerTests {
    private static let options: CircuitBreaker.Options = {
        var options = CircuitBreaker.Options()
        options.failures = 3
        options.failurePercent = 50
        options.windowMilliseconds = 100
        options.openMilliseconds = 10
        options.longestOpenMilliseconds = 40
        options.probes = 2
        options.probeMilliseconds = 5
        return options
    }()

    private func opened(at now: Int64 = 0) -> CircuitBreaker {
        var breaker = CircuitBreaker(options: Self.options, now: now)
        for _ in 0..<3 { _ = breaker.failed(.ordinary, now: now, random: 0) }
        return breaker
    }

    @Test func `opens at many failures`() {
        var breaker = CircuitBreaker(options: Self.options, now: 0)
        #expect(breaker.isClosed)
        #expect(breaker.failed(.ordinary, now: 1, random: 0) == false)
        #expect(breaker.failed(.ordinary, now: 2, random: 0) == false)
        #expect(breaker.admit(now: 2) == .pass)
        #expect(breaker.failed(.ordinary, now: 3, random: 0) == true)
        #expect(!breaker.isClosed)
        #expect(breaker.state == .open(until: 13))
        #expect(breaker.admit(now: 12) == .reject)
    }

    @Test func `does not open at few among many`() {
        var breaker = CircuitBreaker(options: Self.options, now: 0)
        for now in 0..<10 { breaker.succeeded(.ordinary, now: Int64(now)) }
        for _ in 0..<9 { #expect(breaker.failed(.ordinary, now: 20, random: 0) == false) }
        #expect(breaker.failed(.ordinary, now: 20, random: 0) == true)
    }

    @Test func `forgets what was long ago`() {
        var breaker = CircuitBreaker(options: Self.options, now: 0)
        _ = breaker.failed(.ordinary, now: 0, random: 0)
        _ = breaker.failed(.ordinary, now: 99, random: 0)
        #expect(breaker.failed(.ordinary, now: 100, random: 0) == false)
        #expect(breaker.state == .closed(since: 100, failures: 1, successes: 0))
        breaker.succeeded(.ordinary, now: 200)
        #expect(breaker.state == .closed(since: 200, failures: 0, successes: 1))
    }

    @Test func `may open at the first failure, also of a new window`() {
        var options = Self.options
        options.failures = 1
        var breaker = CircuitBreaker(options: options, now: 0)
        #expect(breaker.failed(.ordinary, now: 1000, random: 0) == true)
        #expect(breaker.state == .open(until: 1010))
    }

    @Test func `lets one probe pass after a delay, and closes after enough of them`() {
        var breaker = opened()
        #expect(breaker.admit(now: 9) == .reject)
        #expect(breaker.admit(now: 10) == .probe)
        #expect(breaker.admit(now: 10) == .reject)
        breaker.succeeded(.probe, now: 11)
        #expect(breaker.state == .halfOpen(probeSince: nil, successes: 1))
        #expect(breaker.admit(now: 11) == .probe)
        breaker.succeeded(.probe, now: 12)
        #expect(breaker.state == .closed(since: 12, failures: 0, successes: 0))
        #expect(breaker.admit(now: 12) == .pass)
    }

    @Test func `is open for longer each time that a probe fails`() {
        var breaker = opened()
        var now: Int64 = 10
        for delay: Int64 in [20, 40, 40, 40] {
            #expect(breaker.admit(now: now) == .probe)
            #expect(breaker.failed(.probe, now: now, random: 0) == true)
            #expect(breaker.state == .open(until: now + delay))
            now += delay
        }
        for _ in 0..<2 {
            #expect(breaker.admit(now: now) == .probe)
            breaker.succeeded(.probe, now: now)
        }
        #expect(breaker.isClosed)
        for _ in 0..<3 { _ = breaker.failed(.ordinary, now: now, random: 0) }
        #expect(breaker.state == .open(until: now + 10))
    }

    @Test func `leaves a random half of the delay out`() {
        var breaker = CircuitBreaker(options: Self.options, now: 0)
        for _ in 0..<3 { _ = breaker.failed(.ordinary, now: 0, random: 5) }
        #expect(breaker.state == .open(until: 5))
    }

    @Test func `gives up a probe of which nothing is heard`() {
        var breaker = opened()
        #expect(breaker.admit(now: 10) == .probe)
        breaker.succeeded(.probe, now: 11)
        #expect(breaker.admit(now: 12) == .probe)
        #expect(breaker.admit(now: 16) == .reject)
        #expect(breaker.admit(now: 17) == .probe)
        #expect(breaker.state == .halfOpen(probeSince: 17, successes: 0))
    }

    @Test func `learns nothing from what was sent before it opened`() {
        var breaker = opened()
        let open = breaker.state
        breaker.succeeded(.ordinary, now: 5)
        #expect(breaker.failed(.ordinary, now: 5, random: 0) == false)
        breaker.succeeded(.probe, now: 5)
        #expect(breaker.failed(.probe, now: 5, random: 0) == false)
        #expect(breaker.state == open)
        _ = breaker.admit(now: 10)
        let halfOpen = breaker.state
        breaker.succeeded(.ordinary, now: 11)
        #expect(breaker.failed(.ordinary, now: 11, random: 0) == false)
        #expect(breaker.state == halfOpen)
    }

    /// Whatever happens: while it is open nothing passes, and of probes one at a time.
    @Test func `never lets more pass than it says`() {
        var random = SeededRandom(seed: 3)
        var breaker = CircuitBreaker(options: Self.options, now: 0)
        var probe: Int64?
        var (now, rejected, probes) = (Int64(0), 0, 0)
        for _ in 0..<5000 {
            now += Int64(random.below(4))
            let before = breaker.state
            switch (before, breaker.admit(now: now)) {
            case (.closed, .pass): probe = nil
            case (.open(let until), .reject):
                rejected += 1
                #expect(now < until)
            case (.open(let until), .probe):
                #expect(now >= until)
                probe = now
                probes += 1
            case (.halfOpen, .reject):
                rejected += 1
                #expect(probe.map { now - $0 < 5 } ?? false)
            case (.halfOpen, .probe):
                #expect(probe.map { now - $0 >= 5 } ?? true)
                probe = now
                probes += 1
            case (let state, let admission): Issue.record("\(state): \(admission)")
            }
            let kind: CircuitBreaker.Kind = probe == nil ? .ordinary : .probe
            if random.chance(30) { continue }
            if random.chance(40) {
                _ = breaker.failed(kind, now: now, random: random.next())
            } else {
                breaker.succeeded(kind, now: now)
            }
            probe = nil
        }
        #expect(rejected > 100)
        #expect(probes > 100)
    }
}

@Suite("The delay before a connection is made again")
struct ReconnectBackoffTests {
    @Test func `doubles up to the longest`() {
        var backoff = ReconnectBackoff(firstMilliseconds: 50, longestMilliseconds: 300)
        let delays = (0..<5).map { _ in backoff.failed(random: 0) }
        #expect(delays == [50, 100, 200, 300, 300])
        backoff.succeeded()
        #expect(backoff.failed(random: 0) == 50)
    }

    @Test func `is never less than half of that, nor more`() {
        var random = SeededRandom(seed: 9)
        for failures in 0..<40 {
            var least = Int64.max
            var most = Int64.min
            for _ in 0..<300 {
                var backoff = ReconnectBackoff(firstMilliseconds: 50, longestMilliseconds: 5000)
                for _ in 0..<failures { _ = backoff.failed(random: 0) }
                let delay = backoff.failed(random: random.next())
                least = min(least, delay)
                most = max(most, delay)
            }
            let whole = min(5000, 50 << Int64(min(failures, 20)))
            #expect(least >= whole / 2)
            #expect(most <= whole)
            #expect(most > least)
        }
    }

    @Test func `does not overflow`() {
        var backoff = ReconnectBackoff(
            firstMilliseconds: .max / 2, longestMilliseconds: .max)
        for _ in 0..<100 { #expect(backoff.failed(random: .max) > 0) }
        var zero = ReconnectBackoff(firstMilliseconds: 0, longestMilliseconds: 0)
        #expect(zero.failed(random: 7) == 1)
    }
}
