import EngineTestSupport
import HTTPCore
import PinfoldMetrics
import Testing

@testable import PinfoldEngine

@Suite("What a wait for a connection is spent on")
struct ConnectionTimelineTests {
    /// DNS from 100, connecting from 130, a parent's tunnel from 150, TLS from 170, made at 200.
    private func made() -> ConnectionTimeline {
        let timeline = ConnectionTimeline()
        timeline.enter(.dns, at: 100)
        timeline.enter(.connect, at: 130)
        timeline.enter(.tunnel, at: 150)
        timeline.enter(.tls, at: 170)
        timeline.finish(at: 200)
        return timeline
    }

    private func divided(_ timeline: ConnectionTimeline, _ wait: Range<Int64>) -> PhaseTimes {
        var phases = PhaseTimes()
        timeline.divide(wait, among: &phases)
        return phases
    }

    private func times(_ times: KeyValuePairs<Phase, UInt64>) -> PhaseTimes {
        var phases = PhaseTimes()
        for (phase, microseconds) in times { phases.add(phase, microseconds) }
        return phases
    }

    @Test func `is cut where its stages begin`() {
        #expect(divided(made(), 100..<200) == times([.dns: 30, .connect: 40, .tls: 30]))
        #expect(
            made().phases(now: 999) == times([.dns: 30, .connect: 40, .tls: 30]),
            "it was made at 200")
    }

    @Test func `is for a place before the connection was begun`() {
        #expect(
            divided(made(), 60..<205) == times([.queue: 40, .dns: 30, .connect: 40, .tls: 35]))
        #expect(divided(made(), 10..<60) == times([.queue: 50]), "it ends before that")
    }

    @Test func `has nothing of what was done before it began`() {
        #expect(divided(made(), 140..<200) == times([.connect: 30, .tls: 30]))
        #expect(divided(made(), 180..<200) == times([.tls: 20]))
    }

    @Test func `is for a place if the connection was there`() {
        #expect(divided(made(), 200..<260) == times([.queue: 60]))
        #expect(divided(ConnectionTimeline(), 200..<260) == times([.queue: 60]))
    }

    @Test func `adds up whenever it begins and ends`() {
        for begin in stride(from: Int64(90), to: 220, by: 7) {
            for end in stride(from: begin, to: 230, by: 11) {
                #expect(divided(made(), begin..<end).sum == UInt64(end - begin))
            }
        }
    }

    @Test func `of several ways is added up, with the time between them`() {
        let timeline = made()
        timeline.enter(.dns, at: 210)
        timeline.enter(.dns, at: 215)
        timeline.enter(.connect, at: 220)
        #expect(timeline.end == nil)
        #expect(
            divided(timeline, 100..<250) == times([.dns: 40, .connect: 70, .tls: 40]))
        timeline.finish(at: 250)
        timeline.finish(at: 999)
        #expect(timeline.end == 250)
    }

    @Test func `gives the steps of a connection apart`() {
        var expected = ConnectionTimes()
        #expect(ConnectionTimeline().times == expected)
        (expected.lookup, expected.connect, expected.tunnel, expected.handshake) = (30, 20, 20, 30)
        #expect(made().times == expected)
        let reviewed = ConnectionTimeline()
        reviewed.enter(.tls, at: 1)
        reviewed.enter(.review, at: 5)
        reviewed.enter(.tls, at: 50)
        reviewed.finish(at: 52)
        #expect(reviewed.times.handshake == 6, "only the handshake's own time")
        #expect(reviewed.phases(now: 60) == times([.tls: 51]))
    }

    // MARK: Waits

    private func waits(_ begin: Int64) -> Exchange.Waits {
        var waits = Exchange.Waits()
        waits.begin(at: begin)
        return waits
    }

    @Test func `a wait begins once, and ends once`() {
        var waits = waits(100)
        waits.begin(at: 500)
        waits.end(at: 600)
        waits.end(at: 700)
        #expect(waits.phases == times([.queue: 500]))
        #expect(waits.since == 0)
    }

    @Test func `a step on the way is divided from the rest`() {
        var waits = waits(90)
        waits.end(by: made(), at: 200)
        waits.begin(at: 203)
        waits.end(at: 233)
        #expect(waits.phases == times([.queue: 40, .dns: 30, .connect: 40, .tls: 30]))
    }

    @Test func `what is waited for behind the head is no part of the body`() {
        var waits = waits(100)
        waits.end(at: 130, isBehindHead: true)
        waits.translated(in: 5)
        #expect(waits.behindHead == 35)
        #expect(waits.phases == times([.queue: 35]))
        // The attempt was in vain.
        waits.attemptEnded(100)
        #expect(waits.behindHead == 0)
        #expect(waits.phases == times([.queue: 35, .firstByte: 65]))
    }

    // MARK: In the pool

    @Test func `the pool tells how far the connection is that a consumer would get`() throws {
        let still = try StillEngine.reachingLoopback("limits: { upstreamPerHost: 1 }")
        let server = try ScriptedServer()
        let first = try still.acquire(server)
        let second = try still.acquire(server)
        let origin = try still.origin(server)
        #expect(origin.underWay.count == 1)
        #expect(still.pool.timeline(origin, first) === origin.underWay.first)
        #expect(still.pool.timeline(origin, second) == nil, "that one is for the first")
        let peer = try still.peer(of: server)
        still.turn(until: "it is ready") { first.isReady }
        #expect(origin.underWay.isEmpty)
        #expect(still.pool.timeline(origin, first) == nil)
        let made = try #require(first.upstream).timeline
        #expect(made.end != nil && made.tried == server.endpoint)
        #expect(made.times.lookup == nil && made.times.connect != nil)
        // The connection is closed, and the next is for the second.
        first.upstream?.cancel()
        still.turn(until: "another one is made") { !origin.underWay.isEmpty }
        #expect(still.pool.timeline(origin, second) === origin.underWay.first)
        still.pool.abandon(origin, second)
        withExtendedLifetime(peer) {}
    }

    @Test func `a connection that fails leaves nothing under way, and says what was tried`() throws
    {
        let still = try StillEngine.reachingLoopback()
        let nobody = try ScriptedServer(listens: false)
        let connect = ScriptedConnect(still, "127.0.0.1", nobody.port)
        still.turn(until: "it fails") { !connect.outcomes.isEmpty }
        let timeline = connect.operation.timeline
        #expect(timeline.tried == nobody.endpoint && timeline.end != nil)
        let consumer = try still.acquire(nobody)
        let origin = try still.origin(nobody)
        #expect(origin.underWay.count == 1)
        still.turn(until: "it fails") { consumer.isOver }
        #expect(origin.underWay.isEmpty)
    }
}
