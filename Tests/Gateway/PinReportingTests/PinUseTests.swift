import CLinux
import Locking
import TestSupport
import Testing

@testable import PinReporting

@Suite("Which pin matched when")
struct PinUseTests {
    private typealias Count = PinUseTable.Count
    private typealias Use = PinUseTable.PinUse
    private let day: Int64 = 86_400

    private func write(_ table: PinUseTable, _ path: String) throws {
        try #require(try PinUseUpdate.begin(table, path)).finish()
    }

    /// An observer of the pins a and b of the pinset p.
    private func recorder(
        _ path: String, _ counts: Counter, pins: [String] = ["a", "b"],
        onEvent: @escaping (ReportEvent) -> Void = { _ in }
    ) -> PinUseRecorder {
        PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": pins], now: 0,
            onEvent: onEvent)
    }

    @Test func `follows the counters between two checks`() {
        var table = PinUseTable()
        let pins = ["p": ["a", "b"]]
        table.note([:], since: [:], pins: pins, now: 100)
        #expect(table.pinsets["p"]?.evaluated == nil)
        #expect(table.pinsets["p"]?.pins["a"] == Use(since: 100))
        let first = ["p": Count(evaluations: 3, matches: ["a": 2, "b": 0])]
        table.note(first, since: [:], pins: pins, now: 200)
        #expect(table.pinsets["p"]?.evaluated == 200)
        #expect(table.pinsets["p"]?.pins["a"] == Use(since: 100, matched: 200))
        #expect(table.pinsets["p"]?.pins["b"] == Use(since: 100))
        // Nothing new: nothing changes.
        let before = table
        table.note(first, since: first, pins: pins, now: 300)
        #expect(table == before)
        table.note(
            ["p": Count(evaluations: 4, matches: ["a": 2, "b": 1])], since: first, pins: pins,
            now: 400)
        #expect(table.pinsets["p"]?.pins["b"] == Use(since: 100, matched: 400))
        #expect(table.pinsets["p"]?.pins["a"]?.matched == 200)
    }

    @Test func `follows a pin that has moved and drops one that was removed`() {
        var table = PinUseTable()
        table.note(
            ["p": Count(evaluations: 1, matches: ["a": 1])], since: [:], pins: ["p": ["a", "b"]],
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
            ["p": Count(evaluations: 1, matches: ["a": 1])], since: [:], pins: ["p": ["a", "a"]],
            now: 100)
        #expect(table.pinsets["p"]?.pins["a"]?.matched == 100)
    }

    @Test func `makes pins idle after a week in which their pinset verified servers`() {
        var table = PinUseTable()
        let pins = ["a", "b"]
        func idle(_ now: Int64) -> [Int] {
            table.idlePins(of: "p", pins: pins, now: now).map(\.index)
        }
        table.note([:], since: [:], pins: ["p": pins], now: 0)
        // It has verified no server: nothing is known about its pins.
        #expect(idle(100 * day) == [])
        table.note(
            ["p": Count(evaluations: 1, matches: ["a": 1])], since: [:], pins: ["p": pins], now: day
        )
        #expect(idle(7 * day - 1) == [])
        #expect(
            table.idlePins(of: "p", pins: pins, now: 7 * day) == [
                .init(index: 1, text: "b", since: 0, hasMatched: false)
            ])
        // No server was verified since the first one matched.
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
            ["p": Count(evaluations: 1, matches: ["sha256/a+/=": 1])], since: [:],
            pins: ["p": ["sha256/a+/=", "AB:CD"], "q.r-s_t": []], now: 7)
        #expect(PinUseTable(text: table.text) == table)
        #expect(
            table.text == "pinset 7 p\npin 7 - AB:CD\npin 7 7 sha256/a+/=\npinset - q.r-s_t\n")
    }

    @Test(arguments: [
        "pin 1 2 a\n", "pinset x p\n", "pinset 1\n", "pinset - p\npin 1 a\n", "other 1 2 3\n",
        "pinset - p\npin x - a\n", "pinset - p\npin 1 y a\n",
        // No valid times: the year 10000, and values that would overflow.
        "pinset 253402300800 p\n", "pinset -1 p\n", "pinset \(Int64.min) p\n",
        "pinset 7 p\npin \(Int64.min) - a\n", "pinset 7 p\npin 1 \(Int64.max) a\n",
    ])
    func `is refused in another form`(text: String) {
        #expect(PinUseTable(text: text) == nil)
    }

    @Test func `is kept in a file, and is empty if that is damaged`() throws {
        let folder = TemporaryFolder()
        var table = PinUseTable()
        table.note(
            ["p": Count(evaluations: 1, matches: ["a": 1])], since: [:], pins: ["p": ["a", "b"]],
            now: 7)
        let path = folder.file("made/too/pin-use")
        #expect(try PinUseFile.read(path) == nil)
        try write(table, path)
        #expect(try PinUseFile.read(path) == table)
        let whole = try #require(try ReportFolder.contents(of: path))
        let other = folder.file("other")
        for index in whole.indices {
            var changed = whole
            changed[index] ^= 1
            try ReportFolder.write(changed, to: other)
            #expect(try PinUseFile.read(other) == nil, "byte \(index)")
        }
    }

    @Test func `is written at the interval and at the end, by the pins of each time`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        let counts = Counter()
        var recorder = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": ["a"]],
            now: 0
        ) { _ in }
        recorder.look(wall: 100, now: 0)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["a"] == Use(since: 100))
        counts.set(["p": Count(evaluations: 1, matches: ["a": 1])])
        recorder.look(wall: 200, now: 1)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["a"]?.matched == nil)
        // What was counted before a reload belongs to the earlier pins, whenever it is read.
        counts.set(["p": Count(evaluations: 2, matches: ["a": 2])])
        recorder.note([
            ReporterCore.PinChange(counts: counts.value, pins: ["p": ["b", "a"]], wall: 300)
        ])
        counts.set(["p": Count(evaluations: 3, matches: ["a": 3])])
        recorder.look(wall: 350, now: PinUseRecorder.intervalMilliseconds)
        #expect(
            try PinUseFile.read(path)?.pinsets["p"]?.pins == [
                "a": Use(since: 100, matched: 350), "b": Use(since: 300),
            ])
        counts.set(["p": Count(evaluations: 4, matches: ["a": 3, "b": 1])])
        recorder.look(wall: 400, now: PinUseRecorder.intervalMilliseconds + 1, atOnce: true)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["b"]?.matched == 400)
        // The next process continues from there.
        var next = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { [:] }), pins: ["p": ["b", "a"]], now: 0
        ) { _ in }
        next.look(wall: 500, now: 0, atOnce: true)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["b"]?.matched == 400)
    }

    @Test func `is not made, nor its folder, where there are no pins`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("cache/pin-use")
        var recorder = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { [:] }), pins: [:], now: 0
        ) { _ in }
        recorder.look(wall: 100, now: 0, atOnce: true)
        recorder.begin(wall: 200)
        recorder.finish()
        #expect(access(folder.file("cache"), F_OK) != 0)
        // Pins added by a reload are recorded, and forgotten when they are removed.
        recorder.note([ReporterCore.PinChange(counts: [:], pins: ["p": ["a"]], wall: 300)])
        recorder.look(wall: 300, now: 1, atOnce: true)
        #expect(try PinUseFile.read(path)?.pinsets["p"] != nil)
        recorder.note([ReporterCore.PinChange(counts: [:], pins: [:], wall: 400)])
        recorder.look(wall: 400, now: 2, atOnce: true)
        #expect(try PinUseFile.read(path)?.pinsets.isEmpty == true)
    }

    @Test(arguments: ["folder", "pipe", "link"])
    func `is neither read nor written over where there is something else`(_ kind: String) throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        switch kind {
        case "folder": #expect(mkdir(path, 0o700) == 0)
        case "pipe": #expect(mkfifo(path, 0o600) == 0)
        default:
            try folder.write("somebody's", to: "other")
            #expect(symlink(folder.file("other"), path) == 0)
        }
        #expect(throws: ReportFolderError(path, 0)) { try PinUseFile.read(path) }
        let counts = Counter()
        var events: [ReportEvent] = []
        var recorder = PinUseRecorder(
            PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": ["a"]], now: 0
        ) { events.append($0) }
        counts.set(["p": Count(evaluations: 1, matches: ["a": 1])])
        recorder.look(wall: 1, now: 0, atOnce: true)
        recorder.look(wall: 2, now: 1, atOnce: true)
        #expect(events == [.useNotWritten("\(path): is not a regular file")])
        #expect(throws: ReportFolderError(path, 0)) { try PinUseFile.read(path) }
        // What has been counted in the meantime is not lost.
        #expect(rename(path, folder.file("elsewhere")) == 0)
        recorder.look(wall: 3, now: 2, atOnce: true)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["a"]?.matched == 1)
    }

    @Test func `is written to no file that another program has put there`() throws {
        let folder = TemporaryFolder()
        try folder.write("somebody's", to: "other")
        let path = folder.file("pin-use")
        for name in ["\(path).unfinished", "\(path).\(getpid()).unfinished"] {
            #expect(symlink(folder.file("other"), name) == 0)
        }
        try write(PinUseTable(), path)
        #expect(try PinUseFile.read(path) == PinUseTable())
        #expect(
            try ReportFolder.contents(of: folder.file("other")) == Array("somebody's".utf8))
    }

    @Test func `keeps what matched before a reload while its file could not be read`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        #expect(mkdir(path, 0o700) == 0)
        let counts = Counter()
        var recorder = recorder(path, counts)
        counts.set(["p": Count(evaluations: 1, matches: ["a": 1])])
        recorder.note([
            ReporterCore.PinChange(counts: counts.value, pins: ["p": ["b", "a"]], wall: 5)
        ])
        #expect(rmdir(path) == 0)
        var old = PinUseTable()
        old.note([:], since: [:], pins: ["p": ["a", "b"]], now: 2)
        try write(old, path)
        recorder.look(wall: 7, now: 1, atOnce: true)
        #expect(
            try PinUseFile.read(path)?.pinsets["p"]?.pins == [
                "a": Use(since: 2, matched: 5), "b": Use(since: 2),
            ])
    }

    @Test func `has what each of two gateways has seen`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        let (one, other) = (Counter(), Counter())
        var first = recorder(path, one)
        var second = recorder(path, other)
        first.look(wall: 1, now: 0, atOnce: true)
        second.look(wall: 2, now: 0, atOnce: true)
        one.set(["p": Count(evaluations: 1, matches: ["a": 1, "b": 0])])
        other.set(["p": Count(evaluations: 1, matches: ["a": 0, "b": 1])])
        first.look(wall: 3, now: 1, atOnce: true)
        second.look(wall: 4, now: 1, atOnce: true)
        let both = ["a": Use(since: 1, matched: 3), "b": Use(since: 1, matched: 4)]
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins == both)
        // Nor does the end of one discard what the other has seen.
        first.begin(wall: 5)
        first.finish()
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins == both)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.evaluated == 4)
        #expect(folder.names == ["pin-use"])
    }

    @Test func `is written when no other gateway writes`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        // As with containers, the other one has this one's process number.
        let others = "pin-use.\(getpid()).unfinished"
        try folder.write("half a fi", to: others)
        let lock = open_with_mode(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        var events: [ReportEvent] = []
        var recorder = recorder(path, Counter()) { events.append($0) }
        recorder.look(wall: 1, now: 0, atOnce: true)
        #expect(folder.names == [others])
        close(lock)
        recorder.look(wall: 2, now: 1)
        #expect(folder.names == ["pin-use", others])
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["a"] == Use(since: 1))
        #expect(events.isEmpty)
    }

    @Test func `is found whole where the process had no time to give it its name`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pin-use")
        let counts = Counter()
        var first = recorder(path, counts)
        first.look(wall: 1, now: 0, atOnce: true)
        counts.set(["p": Count(evaluations: 1, matches: ["a": 1])])
        first.begin(wall: 2)
        #expect(folder.names.count == 2)
        #expect(try PinUseFile.read(path)?.pinsets["p"]?.pins["a"]?.matched == 2)
        first = recorder(path, Counter())
        try folder.write("half a fi", to: "pin-use.0123456789abcdef.unfinished")
        first.look(wall: 3, now: 0, atOnce: true)
        #expect(folder.names == ["pin-use"])
        #expect(
            try PinUseFile.read(path)?.pinsets["p"]?.pins == [
                "a": Use(since: 1, matched: 2), "b": Use(since: 1),
            ])
    }

    @Test func `is events of once where it cannot be written`() throws {
        let folder = TemporaryFolder()
        try folder.write("", to: "file")
        let counts = Counter()
        var events: [ReportEvent] = []
        withExtendedLifetime(folder) {
            let path = folder.file("file/pin-use")
            var recorder = PinUseRecorder(
                PinReporter.UseWatch(path: path, counts: { counts.value }), pins: ["p": ["a"]],
                now: 0
            ) { events.append($0) }
            recorder.look(wall: 1, now: 0, atOnce: true)
            recorder.look(wall: 2, now: 1, atOnce: true)
        }
        #expect(events.count == 1)
    }
}

/// Counters that a test sets.
private final class Counter: Sendable {
    private let state = Locked<[String: PinUseTable.Count]>([:])
    var value: [String: PinUseTable.Count] { state.withLock { $0 } }
    func set(_ value: [String: PinUseTable.Count]) { state.withLock { $0 = value } }
}
