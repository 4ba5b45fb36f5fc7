import Clocks
import HTTPCore
import Testing

@testable import PinfoldResolver

/// Simultaneous lookups, limits, partial answers, and closing.
@Suite("Lookups at the same time", .timeLimit(.minutes(30))) struct ResolverConcurrencyTests {
    private func held() throws -> DNSServer {
        try DNSServer { .held($0.address(v4: "192.0.2.1", v6: "2001:db8::1")) }
    }

    @Test func `simultaneous lookups of one name ask the server once`() async throws {
        let server = try held()
        let fixture = try ResolverFixture(servers: [server])
        let inbox = Inbox<ResolveResult>()
        for _ in 0..<20 {
            fixture.resolver.resolve(name: "www.example") { inbox.put($0) }
            fixture.resolver.resolve(name: "WWW.example.") { inbox.put($0) }
        }
        await server.waitForTotal(2)
        #expect(fixture.resolver.statistics().waiting == 40)
        #expect(fixture.resolver.statistics().pending == 1)
        server.release()
        let results = await inbox.wait(for: 40)
        #expect(results.allSatisfy { $0 == results[0] && $0.addresses?.count == 2 })
        #expect(server.total == 2)
        let statistics = fixture.resolver.statistics()
        #expect(statistics.merged == 39)
        #expect(statistics.lookups == 1)
        #expect(statistics.waiting == 0)
        #expect(statistics.pending == 0)
    }

    @Test func `as many names are looked up as may be; one past it is refused`() async throws {
        let server = try held()
        let fixture = try ResolverFixture(servers: [server]) { $0.maximumPending = 3 }
        let inbox = Inbox<ResolveResult>()
        for number in 0..<3 {
            fixture.resolver.resolve(name: "n\(number).example") { inbox.put($0) }
        }
        #expect(await fixture.resolve("n3.example") == .failed(.overloaded))
        fixture.resolver.resolve(name: "n1.example") { inbox.put($0) }
        await server.waitForTotal(6)
        server.release()
        let results = await inbox.wait(for: 4)
        #expect(results.allSatisfy { $0.addresses?.count == 2 })
        // A refusal is not cached.
        #expect(await fixture.resolve("n3.example").addresses?.count == 2)
        #expect(fixture.resolver.statistics().count(of: .overloaded) == 1)
    }

    @Test func `as many callers wait as may; one past it is refused`() async throws {
        let server = try held()
        let fixture = try ResolverFixture(servers: [server]) { $0.maximumWaiting = 3 }
        let inbox = Inbox<ResolveResult>()
        for name in ["a.example", "a.example", "b.example"] {
            fixture.resolver.resolve(name: name) { inbox.put($0) }
        }
        #expect(await fixture.resolve("a.example") == .failed(.overloaded))
        #expect(await fixture.resolve("c.example") == .failed(.overloaded))
        await server.waitForTotal(4)
        server.release()
        let results = await inbox.wait(for: 3)
        #expect(results.allSatisfy { $0.addresses?.count == 2 })
    }

    @Test
    func `a limited number of names is cached; the least recently used one is dropped`()
        async throws
    {
        let server = try DNSServer { $0.address(v4: "192.0.2.1", v6: "2001:db8::1") }
        let fixture = try ResolverFixture(servers: [server]) { $0.maximumEntries = 2 }
        for name in ["a.example", "b.example"] { _ = await fixture.resolve(name) }
        #expect(fixture.resolver.statistics().entries == 2)
        #expect(fixture.cached("a.example") != nil)
        _ = await fixture.resolve("c.example")
        #expect(fixture.resolver.statistics().entries == 2)
        #expect(fixture.cached("b.example") == nil)
        #expect(fixture.cached("a.example") != nil)
        #expect(fixture.cached("c.example") != nil)
    }

    @Test(arguments: [DNSWire.RecordType.a, .aaaa])
    func `when one family's answer is late the other's is given, and the whole answer follows`(
        late: DNSWire.RecordType
    ) async throws {
        let server = try DNSServer { query in
            let reply = query.address(v4: "192.0.2.1", v6: "2001:db8::1", ttl: 3600)
            return query.type == late ? .held(reply) : reply
        }
        let fixture = try ResolverFixture(servers: [server]) {
            $0.clock = Clock.monotonicMilliseconds
            $0.resolutionDelayMilliseconds = 10
        }
        let early = late == .a ? "2001:db8::1" : "192.0.2.1"
        let firsts = Inbox<ResolveResult>()
        let laters = Inbox<ResolvedAnswer>()
        fixture.resolver.resolve(
            name: "www.example", later: { laters.put($0) }, completion: { firsts.put($0) })
        // Without `later` a caller also gets the partial answer, and nothing more.
        fixture.resolver.resolve(name: "www.example") { firsts.put($0) }
        let results = await firsts.wait(for: 2)
        #expect(results[0].addresses == [early])
        #expect(results[0].answer?.isComplete == false)
        #expect(results[1] == results[0])
        // A later caller gets the partial answer at once.
        fixture.resolver.resolve(
            name: "www.example", later: { laters.put($0) }, completion: { firsts.put($0) })
        #expect(firsts.values.count == 3)
        #expect(firsts.values.last == results[0])
        #expect(
            fixture.resolver.cached(
                name: "www.example", nowMilliseconds: Clock.monotonicMilliseconds()) == nil)
        #expect(fixture.resolver.statistics().waiting == 2)
        server.release()
        let whole = await laters.wait(for: 2)
        #expect(whole[0].addresses.map(\.description) == ["2001:db8::1", "192.0.2.1"])
        #expect(whole[0].isComplete)
        #expect(whole[1] == whole[0])
        #expect(firsts.values.count == 3)
        #expect(await fixture.resolve("www.example") == .resolved(whole[0]))
        #expect(fixture.resolver.statistics().waiting == 0)
    }

    @Test
    func `when the late family turns out empty, the half follows as the whole`() async throws {
        let server = try DNSServer { query in
            query.type == .a ? query.answer([.a("192.0.2.1")]) : .held(query.answer())
        }
        let fixture = try ResolverFixture(servers: [server]) {
            $0.clock = Clock.monotonicMilliseconds
            $0.resolutionDelayMilliseconds = 1
        }
        let firsts = Inbox<ResolveResult>()
        let laters = Inbox<ResolvedAnswer>()
        fixture.resolver.resolve(
            name: "www.example", later: { laters.put($0) }, completion: { firsts.put($0) })
        #expect(await firsts.wait(for: 1)[0].addresses == ["192.0.2.1"])
        server.release()
        let whole = await laters.wait(for: 1)[0]
        #expect(whole.isComplete)
        #expect(whole.addresses.map(\.description) == ["192.0.2.1"])
        #expect(await fixture.resolve("www.example").answer?.isComplete == true)
    }

    @Test
    func `closed with lookups pending, they and all that follow are cancelled`() async throws {
        let server = try held()
        let fixture = try ResolverFixture(servers: [server])
        let inbox = Inbox<ResolveResult>()
        for number in 0..<10 {
            fixture.resolver.resolve(name: "n\(number % 5).example") { inbox.put($0) }
        }
        await server.waitForTotal(10)
        fixture.resolver.close()
        #expect(inbox.values == [ResolveResult](repeating: .failed(.cancelled), count: 10))
        #expect(await fixture.resolve("www.example") == .failed(.cancelled))
        #expect(fixture.resolver.statistics().pending == 0)
        fixture.resolver.close()
        // What needs no thread is still answered.
        #expect(await fixture.resolve("192.0.2.1").addresses == ["192.0.2.1"])
    }

    @Test
    func `a lookup asked for just before closing is cancelled or answered, not lost`()
        async throws
    {
        let server = try DNSServer { $0.address(v4: "192.0.2.1", v6: "2001:db8::1") }
        for _ in 0..<20 {
            let fixture = try ResolverFixture(servers: [server])
            let inbox = Inbox<ResolveResult>()
            fixture.resolver.resolve(name: "www.example") { inbox.put($0) }
            fixture.resolver.close()
            #expect(inbox.values.count == 1)
        }
    }

    @Test func `a resolver that is released with lookups pending cancels them`() async throws {
        let server = try held()
        let inbox = Inbox<ResolveResult>()
        var fixture: ResolverFixture? = try ResolverFixture(servers: [server])
        fixture?.resolver.resolve(name: "www.example") { inbox.put($0) }
        await server.waitForTotal(2)
        fixture = nil
        #expect(inbox.values == [.failed(.cancelled)])
    }

    @Test func `a completion may look up again, and may close the resolver`() async throws {
        let server = try DNSServer { $0.address(v4: "192.0.2.1", v6: "2001:db8::1") }
        let fixture = try ResolverFixture(servers: [server])
        let inbox = Inbox<ResolveResult>()
        let resolver = fixture.resolver
        resolver.resolve(name: "a.example") { result in
            inbox.put(result)
            resolver.resolve(name: "b.example") { result in
                inbox.put(result)
                resolver.close()
                resolver.resolve(name: "c.example") { inbox.put($0) }
            }
        }
        let results = await inbox.wait(for: 3)
        #expect(results[0].addresses?.count == 2)
        #expect(results[1].addresses?.count == 2)
        #expect(results[2] == .failed(.cancelled))
    }

    @Test func `from many tasks at once, every lookup gets its one answer`() async throws {
        let server = try DNSServer { query in
            query.name.hasPrefix("no")
                ? query.answer(code: 3)
                : query.address(
                    v4: "192.0.2.1", v6: "2001:db8::1", ttl: 0)
        }
        let fixture = try ResolverFixture(servers: [server])
        let resolver = fixture.resolver
        let wrong = await withTaskGroup(of: Int.self) { group in
            for task in 0..<8 {
                group.addTask {
                    var wrong = 0
                    for round in 0..<40 {
                        let name = round % 3 == 0 ? "no\(round).example" : "n\(round % 7).example"
                        let result = await resolver.answer(to: name)
                        let isRight =
                            round % 3 == 0
                            ? result == .failed(.nxdomain) : result.addresses?.count == 2
                        if !isRight { wrong += 1 }
                        if task == 0 { _ = resolver.statistics() }
                    }
                    return wrong
                }
            }
            return await group.reduce(0, +)
        }
        #expect(wrong == 0)
        #expect(resolver.statistics().pending == 0)
    }

    @Test func `the statistics count what was done`() async throws {
        let server = try DNSServer { query in
            query.name == "no.example"
                ? query.answer(code: 3) : query.address(v4: "192.0.2.1", v6: "2001:db8::1")
        }
        let fixture = try ResolverFixture(servers: [server], hosts: "10.0.0.1 db.example")
        for name in ["www.example", "www.example", "no.example", "no.example", "db.example"] {
            _ = await fixture.resolve(name)
        }
        _ = await fixture.resolve("bad name")
        let statistics = fixture.resolver.statistics()
        #expect(statistics.queries == 4)
        #expect(statistics.lookups == 3)
        #expect(statistics.hostsAnswers == 1)
        #expect(statistics.cacheHits == 1)
        #expect(statistics.negativeCacheHits == 1)
        #expect(statistics.resolved == 2)
        #expect(statistics.count(of: .nxdomain) == 1)
        #expect(statistics.count(of: .badName) == 1)
        #expect(statistics.entries == 3)
        #expect(statistics.latencyCounts.reduce(0, +) == 3)
        #expect(statistics.latencyCounts[0] == 3)
        #expect(statistics.latencySumMilliseconds == 0)
    }

    @Test func `a latency falls into the first bucket whose bound it does not exceed`() {
        var statistics = ResolverStatistics()
        for latency: Int64 in [0, 1, 2, 3, 5000, 5001, -1] {
            statistics.add(latencyMilliseconds: latency)
        }
        #expect(statistics.latencyCounts[0] == 3)
        #expect(statistics.latencyCounts[1] == 1)
        #expect(statistics.latencyCounts[2] == 1)
        #expect(statistics.latencyCounts[11] == 1)
        #expect(statistics.latencyCounts[12] == 1)
        #expect(statistics.latencySumMilliseconds == 10_007)
    }

    @Test func `every failure has a unique token`() {
        #expect(
            Set(ResolveError.allCases.map(\.rawValue)).count == ResolveError.allCases.count)
        #expect(ResolveError.nxdomain.rcode.map { "\($0)" } == "NXDOMAIN")
        #expect(ResolveError.timeout.rcode == nil)
    }
}
