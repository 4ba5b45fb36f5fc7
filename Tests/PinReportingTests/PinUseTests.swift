import Locking
import TestSupport
import Testing

@testable import PinReporting

@Suite("Which pin matched when")
struct PinUseTests {
    private typealias Count = PinUseTable.Count
    private typealias Use = PinUseTable.PinUse
    private let day: Int64 = 86_400

    @Test func `is what the counters say between two looks`() {
        var table = PinUseTable()
        let pins = ["p": ["a", "b"]]
        table.note([:], since: [:], pins: pins, now: 100)
        #expect(table.pinsets["p"]?.evaluated == nil)
        #expect(table.pinsets["p"]?.pins["a"] == Use(since: 100))
        let first = ["p": Count(evaluations: 3, matches: [2, 0])]
        table.note(first, since: [:], pins: pins, now: 200)
        #expect(table.pinsets["p"]?.evaluated == 200)
        #expect(table.pinsets["p"]?.pins["a"] == Use(since: 100, matched: 200))
        #expect(table.pinsets["p"]?.pins["b"] == Use(since: 100))
        // Nothing new: nothing changes.
        let before = table
        table.note(first, since: first, pins: pins, now: 300)
        #expect(table == before)
        table.note(
            ["p": Count(evaluations: 4, matches: [2, 1])], since: first, pins: pins, now: 400)
        #expect(table.pinsets["p"]?.pins["b"] == Use(since: 100, matched: 400))
        #expect(table.pinsets["p"]?.pins["a"]?.matched == 200)
    }

    @Test func `follows a pin that has another place and forgets one that is gone`() {
        var table = PinUseTable()
        table.note(
            ["p": Count(evaluations: 1, matches: [1])], since: [:], pins: ["p": ["a", "b"]],
            now: 100)
        table.note([:], since: [:], pins: ["p": ["c", "a"]], now: 200)
        #expect(
            table.pinsets["p"]?.pins == [
                "c": Use(since: 200), "a": Use(since: 100, matched: 100),
            ])
        table.note([:], since: [:], pins: [:], now: 300)
        #expect(table.pinsets.isEmpty)
    }

    @Test func `knows a pin that is written twice by either place`() {
        var table = PinUseTable()
        table.note(
            ["p": Count(evaluations: 1, matches: [0, 1])], since: [:], pins: ["p": ["a", "a"]],
            now: 100)
        #expect(table.pinsets["p"]?.pins["a"]?.matched == 100)
    }

    @Test func `makes pins idle after a week in which their pinset judged servers`() {
        var table = PinUseTable()
        let pins = ["a", "b"]
        func idle(_ now: Int64) -> [Int] {
            table.idlePins(of: "p", pins: pins, now: now).map(\.index)
        }
        table.note([:], since: [:], pins: ["p": pins], now: 0)
        // It has judged nobody: nothing is known of its pins.
        #expect(idle(100 * day) == [])
        table.note(
            ["p": Count(evaluations: 1, matches: [1])], since: [:], pins: ["p": pins], now: day)
        #expect(idle(7 * day - 1) == [])
        #expect(
            table.idlePins(of: "p", pins: pins, now: 7 * day) == [
                .init(index: 1, text: "b", since: 0, hasMatched: false)
            ])
        // Nobody was judged since the first one matched.
        #expect(idle(100 * day) == [1])
        table.note(
            ["p": Count(evaluations: 1)], since: [:], pins: ["p": pins], now: 10 * day)
        #expect(
            table.idlePins(of: "p", pins: pins, now: 10 * day) == [
                .init(index: 0, text: "a", since: day, hasMatched: true),
                .init(index: 1, text: "b", since: 0, hasMatched: false),
            ])
        #expect(table.idlePins(of: "q", pins: pins, now: 100 * day) == [])
        #expect(table.idlePins(of: "p", pins: ["unknown"], now: 100 * day) == [])
    }

    @Test func `is the same again when it is read from its text`() throws {
        var table = PinUseTable()
        #expect(PinUseTable(text: table.text) == table)
        table.note(
            ["p": Count(evaluations: 1, matches: [1])], since: [:],
            pins: ["p": ["sha256/a+/=", "AB:CD"], "q.r-s_t": []], now: 7)
        #expect(PinUseTable(text: table.text) == table)
        #expect(
            table.text == "pinset 7 p\npin 7 - AB:CD\npin 7 7 sha256/a+/=\npinset - q.r-s_t\n")
    }

    @Test(arguments: [
        "pin 1 2 a\n", "pinset x p\n", "pinset 1\n", "pinset - p\npin 1 a\n", "other 1 2 3\n",
        "pinset - p\npin x - a\n", "pinset - p\npin 1 y a\n",
    ])
    func `is nothing that has another form`(text: String) {
        #expect(PinUseTable(text: text) == nil)
    }

    @Test func `is kept in a file, and is none if that is damaged`() throws {
        let folder = TemporaryFolder()
        var table = PinUseTable()
        table.note(
            ["p": Count(evaluations: 1, matches: [1])], since: [:], pins: ["p": ["a", "b"]],
            now: 7)
        let path = folder.file("made/too/pin-use")
        #expect(PinUseFile.read(path) == nil)
        try PinUseFile.write(table, to: path)
        #expect(PinUseFile.read(path) == table)
        let whole = try #require(ReportFolder.contents(of: path))
        let other = folder.file("other")
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            try ReportFolder.write(changed, to: other)
            #expect(PinUseFile.read(other) == nil, "byte \(index)")
        }
    }

    @Test func `is written at the interval and at the end, each time by the pins of its time`() {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        let counts = Counter()
        var recorder = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": ["a"]],
            now: 0
        ) { _ in }
        recorder.look(pins: ["p": ["a"]], wall: 100, now: 0)
        #expect(PinUseFile.read(path)?.pinsets["p"]?.pins["a"] == Use(since: 100))
        counts.set(["p": Count(evaluations: 1, matches: [1])])
        recorder.look(pins: ["p": ["a"]], wall: 200, now: 1)
        #expect(PinUseFile.read(path)?.pinsets["p"]?.pins["a"]?.matched == nil)
        // What was counted before a reload is the pins' of before.
        counts.set(["p": Count(evaluations: 2, matches: [2])])
        recorder.look(
            pins: ["p": ["b", "a"]], wall: 300, now: PinUseRecorder.intervalMilliseconds)
        #expect(
            PinUseFile.read(path)?.pinsets["p"]?.pins == [
                "a": Use(since: 100, matched: 300), "b": Use(since: 300),
            ])
        counts.set(["p": Count(evaluations: 3, matches: [3])])
        recorder.look(
            pins: ["p": ["b", "a"]], wall: 400, now: PinUseRecorder.intervalMilliseconds + 1,
            atOnce: true)
        #expect(PinUseFile.read(path)?.pinsets["p"]?.pins["b"]?.matched == 400)
        // The next process goes on from there.
        var next = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { [:] }), pins: ["p": ["b", "a"]], now: 0
        ) { _ in }
        next.look(pins: ["p": ["b", "a"]], wall: 500, now: 0, atOnce: true)
        #expect(PinUseFile.read(path)?.pinsets["p"]?.pins["b"]?.matched == 400)
    }

    @Test func `is told of once where it cannot be written`() throws {
        let folder = TemporaryFolder()
        try folder.write("", to: "file")
        let counts = Counter()
        var told: [ReportEvent] = []
        withExtendedLifetime(folder) {
            let path = folder.file("file/pin-use")
            var recorder = PinUseRecorder(
                PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": ["a"]],
                now: 0
            ) { told.append($0) }
            recorder.look(pins: ["p": ["a"]], wall: 1, now: 0, atOnce: true)
            recorder.look(pins: ["p": ["a"]], wall: 2, now: 1, atOnce: true)
        }
        #expect(told.count == 1)
    }
}

/// Counters that a test sets.
private final class Counter: Sendable {
    private let state = Locked<[String: PinUseTable.Count]>([:])
    var value: [String: PinUseTable.Count] { state.withLock { $0 } }
    func set(_ value: [String: PinUseTable.Count]) { state.withLock { $0 = value } }
}
