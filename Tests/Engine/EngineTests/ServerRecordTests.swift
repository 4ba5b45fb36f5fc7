import HTTPCore
import PinfoldConfiguration
import Testing

@testable import PinfoldEngine

@Suite("What is known about the servers of a set")
struct ServerRecordTests {
    private static let rules = {
        var rules = UpstreamSet.Ejection()
        rules.failures = 3
        rules.windowMilliseconds = 1_000
        rules.periodMilliseconds = 100
        return rules
    }()

    // MARK: Ejection

    @Test(
        arguments: [
            ([0, 1, 2], true), ([0, 1], false), ([0, 500, 1_000], true), ([0, 500, 1_001], false),
            ([0, 500, 1_001, 1_002], true), ([0, 2_000, 4_000, 6_000], false),
        ] as [([Int64], Bool)])
    func `failures in a row within the window are too many`(times: [Int64], expected: Bool) {
        var record = EjectionRecord()
        var results = times.map { record.failed(at: $0, by: Self.rules) }
        #expect(results.removeLast() == expected)
        #expect(!results.contains(true))
    }

    @Test func `a success ends the row`() {
        var record = EjectionRecord()
        for time in 0..<100 as Range<Int64> {
            let isTooMany = record.failed(at: time, by: Self.rules)
            #expect(!isTooMany)
            if time % 2 == 1 { record.succeeded() }
        }
    }

    @Test func `without a number of failures none is too many`() {
        var rules = Self.rules
        rules.failures = 0
        var record = EjectionRecord()
        for time in 0..<100 as Range<Int64> {
            let isTooMany = record.failed(at: time, by: rules)
            #expect(!isTooMany)
        }
    }

    @Test func `each ejection in a row lasts longer, up to ten times`() {
        var record = EjectionRecord()
        var now: Int64 = 1_000
        for expected in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 10] as [Int64] {
            let end = record.eject(at: now, by: Self.rules)
            #expect(end - now == expected * 100)
            now = end + 999
        }
        // It has served for ten periods.
        now += 1
        #expect(record.eject(at: now, by: Self.rules) - now == 100)
    }

    @Test(
        arguments: [
            (0, 1, 50, false), (0, 2, 50, true), (1, 2, 50, false), (1, 3, 50, false),
            (1, 4, 50, true), (0, 1, 100, true), (0, 10, 0, false), (9, 10, 100, true),
        ])
    func `no more than a share of the servers is left out`(
        ejected: Int, servers: Int, percent: Int, expected: Bool
    ) {
        var rules = Self.rules
        rules.sharePercent = percent
        #expect(rules.mayEject(besides: ejected, of: servers) == expected)
    }

    // MARK: Checks

    @Test func `a server goes down after as many failed checks, and up after as many passed`() {
        var check = UpstreamSet.HealthCheck()
        check.rise = 2
        check.fall = 3
        let steps: [(Bool, CheckRecord.State?)] = [
            (true, .up), (false, nil), (false, nil), (true, nil), (false, nil), (false, nil),
            (false, .down), (false, nil), (true, nil), (false, nil), (true, nil), (true, .up),
        ]
        var record = CheckRecord()
        #expect(record.state == .unknown)
        for (passed, expected) in steps {
            #expect(record.ended(passed: passed, by: check) == expected)
        }
    }

    @Test func `the first check decides alone`() {
        for passed in [true, false] {
            var record = CheckRecord()
            let state = record.ended(passed: passed, by: UpstreamSet.HealthCheck())
            #expect(state == (passed ? .up : .down))
        }
    }

    // MARK: The budget

    @Test(arguments: [0, 1, 20, 100])
    func `retries are a share of the requests, and a few more`(percent: Int) {
        var saved = percent == 0 ? 0 : RetryBudget.atFirst
        var retries = 0
        let requests = 10_000
        for _ in 0..<requests {
            saved = RetryBudget.added(to: saved, percent: percent)
            if let left = RetryBudget.taken(from: saved) {
                saved = left
                retries += 1
            }
        }
        let share = requests * percent / 100
        #expect(retries >= min(share, requests) && retries <= share + 10)
    }

    @Test func `what is saved up is limited`() {
        var saved = RetryBudget.atFirst
        for _ in 0..<1_000_000 { saved = RetryBudget.added(to: saved, percent: 100) }
        var retries = 0
        while let left = RetryBudget.taken(from: saved) {
            saved = left
            retries += 1
        }
        #expect(retries == 100)
    }

    // MARK: States

    @Test func `an ejected server comes back by itself, and begins slowly then`() {
        let state = ServerState(url: "http://a.test", cameAt: 0)
        for time in 0..<2 as Range<Int64> {
            #expect(
                state.failed(.connect, "refused", at: time, by: Self.rules) { true } == nil)
        }
        let change = state.failed(.connect, "refused", at: 2, by: Self.rules) { true }
        #expect(change == .ejected(milliseconds: 100))
        #expect(state.isEjected(at: 101) && state.standing(weight: 1, at: 101) == .ejected)
        #expect(state.isUp && state.since == 0)
        #expect(!state.isEjected(at: 102) && state.since == 102)
        #expect(state.standing(weight: 1, at: 102) == .up)
        #expect(state.standing(weight: 0, at: 102) == .draining)
        #expect(state.counts.failures[ServerFailureReason.connect.rawValue] == 3)
        #expect(state.counts.ejections == 1 && state.cause == "refused")
    }

    @Test func `a server is not left out if too many are, nor for failures between successes`() {
        let state = ServerState(url: "http://a.test", cameAt: 0)
        for time in 0..<10 as Range<Int64> {
            #expect(
                state.failed(.status, "503", at: time, by: Self.rules) { false } == nil)
        }
        #expect(!state.isEjected(at: 10))
        for time in 10..<40 as Range<Int64> {
            state.succeeded()
            _ = state.failed(.status, "503", at: time, by: Self.rules) { true }
        }
        #expect(!state.isEjected(at: 40) && state.counts.ejections == 0)
    }

    @Test func `checks take a server out and bring it back`() {
        let state = ServerState(url: "http://a.test", cameAt: 0)
        let check = UpstreamSet.HealthCheck()
        #expect(state.checked(nil, at: 1, by: check) == nil && state.isUp)
        for time in 2..<4 as Range<Int64> {
            #expect(state.checked("closed", at: time, by: check) == nil && state.isUp)
        }
        #expect(state.checked("closed", at: 4, by: check) == .down && !state.isUp)
        #expect(state.standing(weight: 1, at: 4) == .down && state.cause == "closed")
        #expect(state.checked(nil, at: 5, by: check) == nil && !state.isUp)
        #expect(state.checked(nil, at: 6, by: check) == .up && state.isUp && state.since == 6)
        #expect(state.counts.checksPassed == 3 && state.counts.checksFailed == 3)
        _ = state.checked("closed", at: 7, by: check)
        state.endChecks()
        #expect(state.isUp)
    }

    @Test(
        arguments: [
            (.connectFailed(.connectionRefused), .connect), (.connectTimeout, .connect),
            (.nameNotResolved(.nxdomain), .name), (.tlsTimeout, .tls), (.tlsFailed(.notTLS), .tls),
            (.server(.firstByteTimeout), .timeout), (.server(.upstreamClosed), .connection),
            (.upstreamReset(.connectionReset), .connection),
            (.upstreamUnanswered(nil), .connection),
            (.response(.malformedStatusLine), .response),
            (.gateway(.tooManyPending), nil), (.gateway(.superseded), nil),
            (.nameNotResolved(.overloaded), nil), (.server(.noServer), nil),
        ] as [(ExchangeError, ServerFailureReason?)])
    func `an error is a server's failure unless the gateway caused it`(
        error: ExchangeError, expected: ServerFailureReason?
    ) {
        #expect(ServerFailureReason(error) == expected)
    }

    // MARK: Sets

    private static func set(_ urls: String..., change: (inout UpstreamSet) -> Void = { _ in })
        -> UpstreamSet
    {
        var set = UpstreamSet()
        set.servers = urls.map {
            .init(origin: UpstreamOrigin(scheme: .http, host: $0, port: 80))
        }
        change(&set)
        return set
    }

    @Test func `a server goes on over a reload, and a new one comes later than the first`() {
        let key = StickyKey()
        let before = ServerSet(
            listener: "r", Self.set("a.test", "b.test"), following: nil, key: key, now: 5)
        #expect(before.servers.map(\.since) == [0, 0])
        for _ in 0..<5 { _ = before.failed(1, .connect, "refused", at: 5) }
        let after = ServerSet(
            listener: "r", Self.set("b.test", "c.test"), following: before, key: key, now: 9)
        #expect(after.servers[0] === before.servers[1])
        #expect(after.servers[0].isEjected(at: 9))
        #expect(after.servers[1].since == 9)
    }

    @Test func `at most half of the servers are ejected together`() {
        let set = ServerSet(
            listener: "r", Self.set("a.test", "b.test", "c.test"), following: nil,
            key: StickyKey(), now: 0)
        for server in 0..<3 {
            for time in 0..<20 as Range<Int64> { _ = set.failed(server, .connect, "", at: time) }
        }
        #expect(set.servers.map { $0.isEjected(at: 20) } == [true, false, false])
    }

    @Test func `a cookie's value is of one server, and of nothing that can be made up`() throws {
        let key = try #require(StickyKey([UInt8](repeating: 7, count: 32)))
        #expect(StickyKey([1, 2]) == nil)
        let sticky = Self.set("a.test", "b.test") { $0.stickyCookie = "route" }
        let set = ServerSet(listener: "r", sticky, following: nil, key: key, now: 0)
        #expect(set.cookieValues.allSatisfy { $0.count == 22 })
        /// The server that a cookie's value names.
        func server(_ value: [UInt8]) -> Int? { set.server(ofCookie: value.span) }
        for (index, value) in set.cookieValues.enumerated() {
            let (whole, cut) = (server(value), server(Array(value.dropLast())))
            #expect(whole == index && cut == nil)
        }
        let (url, nothing) = (server(Array("http://a.test".utf8)), server([]))
        #expect(url == nil && nothing == nil)
        // The same key gives the same value in every process, whatever else is in the set.
        let other = ServerSet(
            listener: "r", Self.set("c.test", "b.test") { $0.stickyCookie = "route" },
            following: nil, key: key, now: 0)
        #expect(other.cookieValues[1] == set.cookieValues[1])
        let foreign = ServerSet(listener: "r", sticky, following: nil, key: StickyKey(), now: 0)
        #expect(foreign.cookieValues[0] != set.cookieValues[0])
        let text = set.cookie(of: 0, isSecure: true)
        let value = String(decoding: set.cookieValues[0], as: UTF8.self)
        #expect(text == "route=\(value); Path=/; HttpOnly; SameSite=Lax; Secure")
        #expect(!set.cookie(of: 0, isSecure: false).contains("Secure"))
    }

    /// Computed with Python's hmac.
    @Test func `the values are HMAC-SHA-256`() throws {
        let key = try #require(StickyKey(Array(0..<32)))
        let value = String(decoding: key.value(of: "http://a.test"), as: UTF8.self)
        #expect(value == "fWuEQAVZF_s5nla56uAFdg")
    }
}
