import Activity
import HTTPCore
import Locking
import PinfoldMetrics
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Overview: readers of events")
struct EventReadersTests {
    static func state(
        _ ring: FlowRing, process: String = "one", leftOut: UInt64 = 0
    ) -> ObservedState {
        ObservedState(
            process: process, flows: ring.snapshot, leftOut: leftOut,
            names: FlowNames(listeners: LabelTable(["proxy"]), hosts: LabelTable(["api"])),
            pulse: nil, activity: ActivityReport(ActivityTracker()), transfers: nil)
    }

    /// What the only reader is sent; `nil` for nothing.
    private func sent(
        _ readers: inout EventReaders, _ state: ObservedState, at moment: Int64 = 0
    ) -> String? {
        let waiting = readers.waiting
        #expect(waiting.count <= 1)
        guard var writing = waiting.first, writing.write(state, at: moment),
            readers.sent(writing) != nil
        else { return nil }
        return writing.text
    }

    private func join(
        _ readers: inout EventReaders, after last: EventID? = nil, isFull: Bool = false
    ) throws -> UInt64 {
        let place = readers.add(isFull: isFull, after: last, at: 0)
        return try #require(place).id
    }

    private func ask(_ readers: inout EventReaders, _ id: UInt64) {
        let isReader = readers.wait(id) { _ in }
        #expect(isReader)
    }

    private func events(_ text: String?) -> [String] {
        (text ?? "").split(separator: "\n").filter { $0.hasPrefix("event: ") }
            .map { String($0.dropFirst(7)) }
    }

    @Test func `a reader is told how many more were left out`() throws {
        let ring = FlowRing()
        var readers = EventReaders()
        let id = try join(&readers)
        ask(&readers, id)
        let greeting = sent(&readers, Self.state(ring, leftOut: 7))
        #expect(events(greeting) == ["hello", "activity"], "those before are not news")
        ask(&readers, id)
        let more = sent(&readers, Self.state(ring, leftOut: 12))
        #expect(more == "event: leftOut\ndata: {\"count\":5}\n\n")
        ask(&readers, id)
        let same = sent(&readers, Self.state(ring, leftOut: 12))
        #expect(same == nil)
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
        let early = sent(&readers, Self.state(ring))
        #expect(early == nil, "it has not asked for more")
        ask(&readers, id)
        let nothing = sent(&readers, Self.state(ring))
        #expect(nothing == nil)
        ring.hold(HeldFlow(exchange: 0xAB))
        let text = sent(&readers, Self.state(ring))
        #expect(events(text) == ["flow"])
        #expect(text?.contains("id: one-2\ndata: {") ?? false)
        #expect(text?.contains("00000000000000ab") ?? false)
    }

    @Test func `the oldest come first, and the others in the next pieces`() throws {
        let ring = FlowRing()
        var readers = EventReaders()
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, Self.state(ring))
        for _ in 1...250 { ring.hold(HeldFlow()) }
        var numbers: [String] = []
        for count in [100, 100, 50, 0] {
            ask(&readers, id)
            let text = sent(&readers, Self.state(ring))
            #expect(events(text).count == count)
            numbers += (text ?? "").split(separator: "\n").filter { $0.hasPrefix("id: ") }
                .map { String($0.dropFirst(4)) }
        }
        #expect(numbers == (1...250).map { "one-\($0)" })
    }

    @Test func `who reads slowly is told how many were left out`() throws {
        let ring = FlowRing()
        var readers = EventReaders()
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, Self.state(ring))
        for _ in 1...5000 { ring.hold(HeldFlow()) }
        var missed = 0
        var flows = 0
        for _ in 1...10 {
            ask(&readers, id)
            let text = sent(&readers, Self.state(ring))
            if text?.hasPrefix("event: dropped\ndata: {\"count\":4000}") ?? false { missed += 1 }
            flows += events(text).count { $0 == "flow" }
        }
        #expect(missed == 1)
        #expect(flows == FlowRing.capacity)
        ask(&readers, id)
        let rest = sent(&readers, Self.state(ring))
        #expect(rest == nil)
    }

    @Test func `a reader goes on where it was, or begins anew in another process`() throws {
        let ring = FlowRing()
        for number in 1...10 { ring.hold(HeldFlow(exchange: UInt64(number))) }
        for (last, count) in [("one-7", 3), ("one-10", 0), ("one-99", 0), ("two-7", 0)] {
            var readers = EventReaders()
            let known = EventID(last)
            #expect(known != nil)
            let id = try join(&readers, after: known)
            ask(&readers, id)
            let text = sent(&readers, Self.state(ring))
            #expect(events(text).count { $0 == "flow" } == count, "\(last)")
        }
        for wrong in ["", "7", "one-", "one-x", "one-1-2", "-1x"] {
            #expect(EventID(wrong) == nil)
        }
    }

    @Test func `a long silence is broken`() throws {
        var readers = EventReaders()
        let state = Self.state(FlowRing())
        let id = try join(&readers)
        ask(&readers, id)
        _ = sent(&readers, state, at: 10)
        ask(&readers, id)
        let early = sent(&readers, state, at: EventWriting.silenceMilliseconds)
        #expect(early == nil)
        let late = sent(&readers, state, at: EventWriting.silenceMilliseconds + 10)
        #expect(late == ":\n\n")
    }

    @Test func `there is a limit of readers, and a place is given up`() throws {
        var readers = EventReaders()
        var ids: [UInt64] = []
        for _ in 0..<EventReaders.limit { ids.append(try join(&readers)) }
        let none = readers.add(isFull: false, after: nil, at: 0)
        #expect(none == nil)
        readers.remove(ids[3])
        _ = try join(&readers)
        let isReader = readers.wait(ids[3]) { _ in }
        #expect(!isReader, "it is none any more")
    }

    @Test func `an operator takes the place of who has not proved to be one`() throws {
        var readers = EventReaders()
        let first = try join(&readers)
        for _ in 1..<EventReaders.limit { _ = try join(&readers, isFull: true) }
        ask(&readers, first)
        let place = readers.add(isFull: true, after: nil, at: 0)
        #expect(place?.displaced != nil)
        #expect(readers.count == EventReaders.limit)
        let another = readers.add(isFull: true, after: nil, at: 0)
        #expect(another == nil, "but not of another operator")
    }

    @Test func `what is written for a reader that has left reaches nobody`() throws {
        var readers = EventReaders()
        let id = try join(&readers)
        ask(&readers, id)
        var writing = try #require(readers.waiting.first)
        let isSomething = writing.write(Self.state(FlowRing()), at: 0)
        #expect(isSomething)
        readers.remove(id)
        let reply = readers.sent(writing)
        #expect(reply == nil)
        #expect(readers.count == 0)
    }

    @Test func `all are told of the end`() throws {
        var readers = EventReaders()
        let (one, other) = (try join(&readers), try join(&readers))
        ask(&readers, one)
        let due = readers.end(saying: EventWriting.bye)
        #expect(due.count == 1, "the other one is when it asks")
        guard case .bytes(let bytes)? = due.first?.1 else { return #expect(Bool(false)) }
        #expect(events(String(decoding: bytes, as: UTF8.self)) == ["bye"])
        for id in [one, other] {
            let isReader = readers.wait(id) { _ in }
            #expect(!isReader)
        }
    }
}

@Suite("Overview: the observer")
struct GatewayObserverTests {
    /// A source whose answers a test decides.
    private final class FakeGateway: Sendable {
        let generation = Locked<UInt64>(1)
        let rounds = Locked<[TransferRound]>([])
        let busy = Locked<[[Int]]>([])

        func observer(workers: Int = 2) -> GatewayObserver {
            let flows = FlowAdministration(
                ring: FlowRing(), labels: RouteLabels(), leftOut: { 0 }, watchWorkers: {})
            return GatewayObserver(
                flows, Recordings(labels: RouteLabels()),
                GatewayObserver.Source(
                    reading: { nil }, hosts: { [] }, pinsets: { [] },
                    activity: { ActivityReport(ActivityTracker()) },
                    load: { [busy] percents in
                        busy.withLock { $0.append(percents) }
                        return OverviewReport.Load()
                    },
                    generation: { [generation] in generation.withLock { $0 } },
                    ask: { [rounds] round in rounds.withLock { $0.append(round) } },
                    workers: workers))
        }
    }

    /// What a reader has got.
    private final class Reader: Sendable {
        let pieces = Locked<[String]>([])

        func ask(_ next: LocalPieces) {
            next { [pieces] piece in
                let text =
                    switch piece {
                    case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
                    case .end: "end"
                    }
                pieces.withLock { $0.append(text) }
            }
        }

        var last: String { pieces.withLock { $0.last ?? "" } }
    }

    private struct NotTakenError: Error {}

    private func reading(_ observer: GatewayObserver) throws -> LocalPieces {
        guard case .reads(let pieces) = observer.read(isFull: true, after: nil) else {
            throw NotTakenError()
        }
        return pieces
    }

    @Test func `who asks while workers answer gets that answer`() {
        let gateway = FakeGateway()
        let observer = gateway.observer()
        let counts = Locked<[Int]>([])
        for _ in 0..<3 {
            let isTaken = observer.transfers { report in
                counts.withLock { $0.append(report.count) }
            }
            #expect(isTaken)
        }
        let rounds = gateway.rounds.withLock { $0 }
        #expect(rounds.count == 1)
        rounds.first?.answer([], count: 2, tunnels: 1)
        #expect(counts.withLock { $0 }.isEmpty)
        rounds.first?.answer([], count: 3, tunnels: 0)
        #expect(counts.withLock { $0 } == [5, 5, 5])
        let isTaken = observer.transfers { _ in }
        #expect(isTaken)
        #expect(gateway.rounds.withLock { $0 }.count == 2, "the next one is another question")
        observer.close()
    }

    @Test func `too many who wait are refused, not told that there is nothing`() {
        let observer = FakeGateway().observer()
        let taken = (0..<100).map { _ in observer.transfers { _ in } }
        #expect(taken.count { $0 } == 64)
        observer.close()
    }

    @Test func `a worker that hangs is not waited for`() throws {
        let observer = FakeGateway().observer()
        try observer.start()
        let counts = Locked<[Int]>([])
        _ = observer.transfers { report in counts.withLock { $0.append(report.count) } }
        eventually("the answer without it") { counts.withLock { $0 } == [0] }
        observer.close()
    }

    @Test func `with another configuration readers must ask again`() throws {
        let gateway = FakeGateway()
        let observer = gateway.observer()
        try observer.start()
        let reader = Reader()
        var next: LocalPieces? = try reading(observer)
        if let next { reader.ask(next) }
        eventually("a greeting") { reader.last.contains("event: hello") }
        if let next { reader.ask(next) }
        gateway.generation.withLock { $0 = 2 }
        eventually("the event") { reader.last.contains("event: configuration") }
        if let next { reader.ask(next) }
        eventually("the end") { reader.last == "end" }
        #expect(!observer.hasNoReaders)
        next = nil
        eventually("its place goes with what it reads with") { observer.hasNoReaders }
        observer.close()
    }

    @Test func `at the end readers are told, and no others are taken`() throws {
        let observer = FakeGateway().observer()
        try observer.start()
        let reader = Reader()
        let next = try reading(observer)
        reader.ask(next)
        eventually("a greeting") { reader.last.contains("event: hello") }
        reader.ask(next)
        observer.endReaders()
        #expect(reader.last == EventWriting.bye)
        reader.ask(next)
        #expect(reader.last == "end")
        guard case .ending = observer.read(isFull: true, after: nil) else {
            Issue.record("another one is taken")
            return
        }
        observer.takeReaders()
        _ = try reading(observer)
        observer.close()
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
}
