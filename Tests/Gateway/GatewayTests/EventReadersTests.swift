import Activity
import HTTPCore
import Locking
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Overview: readers of events")
struct EventReadersTests {
    private static func state(_ ring: FlowRing, generation: UInt64 = 1) -> ObservedState {
        ObservedState(
            flows: ring.snapshot,
            names: FlowNames(listeners: LabelTable(["proxy"]), hosts: LabelTable(["api"])),
            pulse: nil, activity: ActivityReport(ActivityTracker()), generation: generation,
            transfers: nil)
    }

    /// What the only reader is sent; `nil` for nothing.
    private func sent(
        _ readers: inout EventReaders, _ state: ObservedState, at moment: Int64 = 0
    ) -> String? {
        let due = readers.due(state, at: moment)
        #expect(due.count <= 1)
        guard case .bytes(let bytes)? = due.first?.1 else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func join(_ readers: inout EventReaders, after last: UInt64? = nil) throws -> UInt64 {
        let id = readers.add(isFull: false, after: last, at: 0)
        return try #require(id)
    }

    private func ask(_ readers: inout EventReaders, _ id: UInt64) {
        let isReader = readers.wait(id) { _ in }
        #expect(isReader)
    }

    private func events(_ text: String?) -> [String] {
        (text ?? "").split(separator: "\n").filter { $0.hasPrefix("event: ") }
            .map { String($0.dropFirst(7)) }
    }

    @Test func `a reader is greeted, and told of what ends from then on`() throws {
        let ring = FlowRing()
        ring.hold(HeldFlow(exchange: 1))
        var readers = EventReaders()
        let id = try join(&readers)
        #expect(!readers.hasNew)
        ask(&readers, id)
        #expect(readers.hasNew)
        let greeting = sent(&readers, Self.state(ring))
        #expect(events(greeting) == ["hello", "activity"])
        #expect(greeting?.hasPrefix("retry: 1000\n\n") ?? false)
        let text1 = sent(&readers, Self.state(ring))
        #expect(text1 == nil, "it has not asked for more")
        ask(&readers, id)
        let text2 = sent(&readers, Self.state(ring))
        #expect(text2 == nil, "there is nothing")
        ring.hold(HeldFlow(exchange: 0xAB))
        let text = sent(&readers, Self.state(ring))
        #expect(events(text) == ["flow"])
        #expect(text?.contains("id: 2\ndata: {") ?? false)
        #expect(text?.contains("00000000000000ab") ?? false)
    }

    @Test func `who reads slowly is told how many were left out`() throws {
        let ring = FlowRing()
        var readers = EventReaders()
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, Self.state(ring))
        for _ in 1...5000 { ring.hold(HeldFlow()) }
        ask(&readers, id)
        let text = sent(&readers, Self.state(ring))
        #expect(events(text).count == EventReaders.flowsPerPiece + 1)
        #expect(text?.hasPrefix("event: dropped\ndata: {\"count\":4900}") ?? false)
        #expect(text?.contains("id: 5000\n") ?? false)
    }

    @Test func `a reader goes on where it was, or begins anew in another process`() throws {
        let ring = FlowRing()
        for number in 1...10 { ring.hold(HeldFlow(exchange: UInt64(number))) }
        for (last, count) in [(UInt64(7), 3), (10, 0), (11, 0), (99, 0)] {
            var readers = EventReaders()
            let id = try join(&readers, after: last)
            ask(&readers, id)
            let flows = events(sent(&readers, Self.state(ring))).filter { $0 == "flow" }
            #expect(flows.count == count, "\(last)")
        }
    }

    @Test func `a long silence is broken`() throws {
        var readers = EventReaders()
        let state = Self.state(FlowRing())
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, state, at: 10)
        ask(&readers, id)
        let text3 = sent(&readers, state, at: EventReaders.silenceMilliseconds)
        #expect(text3 == nil)
        let text4 = sent(&readers, state, at: EventReaders.silenceMilliseconds + 10)
        #expect(text4 == ":\n\n")
    }

    @Test func `another configuration is an event`() throws {
        var readers = EventReaders()
        let ring = FlowRing()
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, Self.state(ring))
        ask(&readers, id)
        let text = sent(&readers, Self.state(ring, generation: 2))
        #expect(events(text) == ["configuration"])
    }

    @Test func `there is a limit of readers, and a place is given up`() throws {
        var readers = EventReaders()
        var ids: [UInt64] = []
        for _ in 0..<EventReaders.limit {
            ids.append(try join(&readers))
        }
        let none = readers.add(isFull: true, after: nil, at: 0)
        #expect(none == nil)
        readers.remove(ids[3])
        _ = try join(&readers)
        let isReader = readers.wait(ids[3]) { _ in }
        #expect(!isReader, "it is none any more")
    }

    @Test func `all are told of the end`() throws {
        var readers = EventReaders()
        let (one, other) = (
            try join(&readers),
            try join(&readers)
        )
        ask(&readers, one)
        let due = readers.end()
        #expect(due.count == 1, "the other one is when it asks")
        guard case .bytes(let bytes)? = due.first?.1 else { return #expect(Bool(false)) }
        #expect(events(String(decoding: bytes, as: UTF8.self)) == ["bye"])
        for id in [one, other] {
            let isReader = readers.wait(id) { _ in }
            #expect(!isReader)
        }
    }
}

@Suite("Overview: the last minutes")
struct TrafficHistoryTests {
    private func reading(_ second: Int64, _ exchanges: UInt64, busy: Int64 = 0)
        -> TrafficHistory.Reading
    {
        var totals = TrafficTotals()
        totals.exchanges = exchanges
        return TrafficHistory.Reading(
            time: second * 1000, moment: second * 1000, totals: totals, inFlight: 1, tunnels: 0,
            busyNanoseconds: [busy])
    }

    @Test func `a sample is what happened between two readings`() {
        var history = TrafficHistory()
        history.add(reading(0, 100))
        #expect(history.samples.isEmpty)
        history.add(reading(5, 130, busy: 2_500_000_000))
        #expect(history.samples.map(\.exchanges) == [30])
        #expect(history.samples.first?.busy == [50])
        history.add(reading(10, 20))
        #expect(history.samples.last?.exchanges == 0, "counters that began anew")
    }

    @Test func `five minutes are kept`() {
        var history = TrafficHistory()
        for second in 0...200 { history.add(reading(Int64(second) * 5, UInt64(second))) }
        #expect(history.samples.count == 60)
        #expect(history.samples.last?.time == 1_000_000)
    }

    @Test func `a pin's last match is when its count was seen to grow`() {
        var history = PinHistory()
        func pinset(_ matches: UInt64) -> [PinsetMetrics] {
            [PinsetMetrics(label: "a", pins: [PinMetrics(text: "sha256/x", matches: matches)])]
        }
        history.add(pinset(0), at: 1)
        #expect(history.lastMatch(of: "sha256/x", in: "a") == nil)
        history.add(pinset(2), at: 2)
        history.add(pinset(2), at: 3)
        #expect(history.lastMatch(of: "sha256/x", in: "a") == 2)
        history.add([], at: 4)
        #expect(history.lastMatch(of: "sha256/x", in: "a") == nil, "only what is in force is kept")
    }

    @Test func `what expires soon needs attention, the sooner the more`() {
        var finder = AttentionFinder(now: 1_000_000)
        let day: Int64 = 86_400
        finder.look(atEnd: 1_000_000 + 20 * day, of: "a", .certificate)
        finder.look(atEnd: 1_000_000 + 10 * day, of: "b", .certificate)
        finder.look(atEnd: 1_000_000 + 2 * day, of: "c", .pinset, pinset: "p")
        finder.look(atEnd: 999_000, of: "d", .certificate)
        #expect(
            finder.sorted.map(\.text) == [
                "c expires in 2 days", "d has expired", "b expires in 10 days",
            ])
        #expect(finder.sorted.map(\.level) == [.critical, .critical, .warning])
    }

    @Test func `a host with more failures than usual is in trouble`() {
        var (now, before) = (HostTraffic(label: "a"), HostTraffic(label: "a"))
        (before.exchanges, before.failures) = (1000, 10)
        (now.exchanges, now.failures) = (1100, 30)
        #expect(HostReport(now: now, before: before).troubles.map(\.word) == ["failures"])
        now.failures = 12
        #expect(HostReport(now: now, before: before).troubles.isEmpty)
    }
}
