import CLinux
import Foundation
import Locking
import PinfoldMetrics
import TestSupport
import Testing

@testable import Gateway
@testable import PinfoldEngine

@Suite("Access log: the thread and its file")
struct AccessLogTests {
    private static var quick: FlowQueueLimits {
        var limits = FlowQueueLimits()
        limits.flushMilliseconds = 1
        limits.queueBytes = 1 << 16
        return limits
    }

    private func open(
        _ path: String, format: AccessLogFormat = .json, workers: Int = 1,
        limits: FlowQueueLimits = quick,
        onEvent: @escaping @Sendable (AccessLogEvent) -> Void = { _ in }
    ) throws -> AccessLog {
        try AccessLog(
            path: path, format: format, workers: workers, labels: LoggedRequest.labels,
            limits: limits, onEvent: onEvent)
    }

    private func exchange(_ line: String) -> UInt64? {
        let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return (object?["id"] as? String).flatMap { UInt64($0, radix: 16) }
    }

    @Test func `lines of a worker are written in order, and closing writes what is left`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        for number in 0..<500 { log.producers[0].log(LoggedRequest.record(UInt64(number))) }
        let isComplete = log.close(withinMilliseconds: 10_000)
        let written = folder.lines("a.log").compactMap(exchange)
        let dropped = log.lines.dropped
        #expect(written == Array(written.sorted()))
        #expect(isComplete)
        #expect(UInt64(written.count) + dropped == 500)
        #expect(log.lines.written == UInt64(written.count))
    }

    @Test
    func `a line is written without anything after it, however long the log was idle`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        for number in 1...20 {
            log.producers[0].log(LoggedRequest.record(UInt64(number)))
            eventually("line \(number) is written") {
                log.lines.written == UInt64(number)
            }
        }
        #expect(folder.lines("a.log").count == 20)
        log.close(withinMilliseconds: 10_000)
    }

    @Test func `an existing file is appended to`() throws {
        let folder = TemporaryFolder()
        try "before\n".write(toFile: folder.file("a.log"), atomically: false, encoding: .utf8)
        let log = try open(folder.file("a.log"), format: .combined)
        log.producers[0].log(LoggedRequest.record())
        #expect(log.close(withinMilliseconds: 10_000))
        let lines = folder.lines("a.log")
        #expect(lines.count == 2)
        #expect(lines.first == "before")
        #expect(lines.last?.hasPrefix("127.0.0.1 - - [") ?? false)
    }

    @Test func `the file is not for others to read`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        log.close(withinMilliseconds: 10_000)
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("a.log"))
        let mode = try #require(attributes[.posixPermissions] as? Int)
        #expect(mode & 0o027 == 0)
    }

    @Test func `several workers' lines all arrive, each worker's in order`() async throws {
        let folder = TemporaryFolder()
        var limits = Self.quick
        limits.queueBytes = 1 << 22
        let log = try open(folder.file("a.log"), workers: 3, limits: limits)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<3 {
                group.addTask {
                    for number in 0..<2000 {
                        let id = UInt64(worker) << 32 | UInt64(number)
                        log.producers[worker].log(LoggedRequest.record(id))
                    }
                }
            }
        }
        #expect(log.close(withinMilliseconds: 20_000))
        let ids = folder.lines("a.log").compactMap(exchange)
        #expect(ids.count == 6000)
        for worker in 0..<3 {
            let own = ids.filter { $0 >> 32 == UInt64(worker) }.map { $0 & 0xffff_ffff }
            #expect(own == Array(0..<2000))
        }
        #expect(log.lines == AccessLogLines(written: 6000, dropped: 0))
    }

    @Test func `after a rename and reopen, a line logged later is in the new file`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        for generation in 0..<20 {
            log.producers[0].log(LoggedRequest.record(UInt64(generation)))
            eventually("the line is written") {
                log.lines.written == UInt64(generation + 1)
            }
            try FileManager.default.moveItem(
                atPath: folder.file("a.log"), toPath: folder.file("a.log.\(generation)"))
            log.reopen()
        }
        log.producers[0].log(LoggedRequest.record(99))
        #expect(log.close(withinMilliseconds: 10_000))
        #expect(folder.lines("a.log").compactMap(exchange) == [99])
        for generation in 0..<20 {
            let ids = folder.lines("a.log.\(generation)").compactMap(exchange)
            #expect(ids == [UInt64(generation)])
        }
    }

    @Test func `a reload can change the path, the format and the names`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        log.producers[0].log(LoggedRequest.record())
        eventually("the line is written") { log.lines.written == 1 }
        var labels = LoggedRequest.labels
        let added = labels.hosts.indexes(for: ["added"])[0]
        log.reconfigure(path: folder.file("b.log"), format: .json, labels: labels)
        var record = LoggedRequest.record()
        record.counted.route.host = added
        log.producers[0].log(record)
        #expect(log.close(withinMilliseconds: 10_000))
        #expect(folder.lines("a.log").count == 1)
        #expect(folder.lines("b.log").count == 1)
        #expect(folder.lines("b.log").first?.contains("\"host\":\"added\"") ?? false)
    }

    @Test func `a file that cannot be opened is an error at the start`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("missing/a.log")
        #expect(throws: AccessLogError.open(path: path, code: ENOENT)) {
            _ = try open(path)
        }
        #expect(throws: AccessLogError.open(path: folder.path, code: EISDIR)) {
            _ = try open(folder.path)
        }
    }

    @Test func `a reopen that fails is reported, and the old file stays in use`() throws {
        let folder = TemporaryFolder()
        let events = Locked<[AccessLogEvent]>([])
        let log = try open(folder.file("a.log")) { event in
            events.withLock { $0.append(event) }
        }
        let path = folder.file("missing/a.log")
        log.reconfigure(path: path, format: .json, labels: LoggedRequest.labels)
        eventually("the failure is reported") { events.withLock { !$0.isEmpty } }
        log.producers[0].log(LoggedRequest.record(5))
        #expect(log.close(withinMilliseconds: 10_000))
        #expect(events.withLock { $0 } == [.reopenFailed(path: path, code: ENOENT)])
        #expect(folder.lines("a.log").compactMap(exchange) == [5])
    }

    @Test func `a full disk drops and counts, is reported once, and recovers`() throws {
        let folder = TemporaryFolder()
        let events = Locked<[AccessLogEvent]>([])
        let log = try open("/dev/full") { event in events.withLock { $0.append(event) } }
        for number in 1...3 {
            log.producers[0].log(LoggedRequest.record(UInt64(number)))
            eventually("line \(number) is dropped") {
                log.lines.dropped == UInt64(number)
            }
        }
        #expect(events.withLock { $0 } == [.writeFailed(code: ENOSPC)])
        log.reconfigure(
            path: folder.file("a.log"), format: .json, labels: LoggedRequest.labels)
        log.producers[0].log(LoggedRequest.record(4))
        eventually("it works again") { log.lines.written == 1 }
        log.close(withinMilliseconds: 10_000)
        #expect(
            events.withLock { $0 } == [.writeFailed(code: ENOSPC), .writeRecovered(lines: 3)])
        #expect(folder.lines("a.log").compactMap(exchange) == [4])
    }

    @Test func `the thread is named access-log, and ends with the log`() throws {
        func hasThread(_ descriptor: String) -> Bool {
            let tasks =
                (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            return tasks.contains { task in
                let name = FileManager.default.contents(atPath: "/proc/self/task/\(task)/comm")
                return name.map { String(decoding: $0, as: UTF8.self) } == descriptor + "\n"
            }
        }
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        eventually("the thread is there") { hasThread("access-log") }
        log.close(withinMilliseconds: 10_000)
    }

    @Test
    func `closing twice is harmless, and an owner that forgets to close loses no thread`() throws {
        let folder = TemporaryFolder()
        let log = try open(folder.file("a.log"))
        #expect(log.close(withinMilliseconds: 10_000))
        #expect(!log.close(withinMilliseconds: 10_000))
        _ = try open(folder.file("b.log"))
    }
}

@Suite("Access log: a reader that does not read")
struct AccessLogPipeTests {
    /// A named pipe and its reading end.
    private final class Pipe: Sendable {
        let folder: TemporaryFolder
        let reader: Int32

        init() throws {
            folder = TemporaryFolder()
            let path = folder.file("pipe")
            try #require(mkfifo(path, 0o600) == 0)
            reader = open_with_mode(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
            try #require(reader >= 0)
        }

        deinit { _ = CLinux.close(reader) }

        /// Whether nothing more fits.
        var isFull: Bool {
            let writer = open_with_mode(folder.file("pipe"), O_WRONLY | O_NONBLOCK | O_CLOEXEC, 0)
            defer { _ = CLinux.close(writer) }
            var state = pollfd(fd: writer, events: Int16(POLLOUT), revents: 0)
            return poll(&state, 1, 0) == 0
        }

        /// Everything in the pipe at the moment.
        func read() -> [UInt8] {
            var all: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 65536)
            while true {
                let count = CLinux.read(reader, &buffer, buffer.count)
                guard count > 0 else { return all }
                all += buffer[..<count]
            }
        }
    }

    private func open(_ pipe: Pipe) throws -> AccessLog {
        var limits = FlowQueueLimits()
        limits.flushMilliseconds = 1
        limits.queueBytes = 1 << 16
        return try AccessLog(
            path: pipe.folder.file("pipe"), format: .json, workers: 1,
            labels: LoggedRequest.labels, limits: limits)
    }

    /// Logs until the pipe is full, and then until a line is dropped; returns how many were logged.
    private func fill(_ log: AccessLog, _ pipe: Pipe) -> UInt64 {
        var logged: UInt64 = 0
        func write(until isDone: () -> Bool) {
            while !isDone() && logged < 1_000_000 {
                logged += 1
                log.producers[0].log(LoggedRequest.record(logged))
            }
        }
        write { pipe.isFull }
        // The thread's buffer and the queue together hold far fewer.
        let dropped = log.lines.dropped
        write { log.lines.dropped > dropped }
        #expect(log.lines.dropped > 0)
        return logged
    }

    @Test func `a pipe without a reader is an error, not a hang`() throws {
        let folder = TemporaryFolder()
        try #require(mkfifo(folder.file("pipe"), 0o600) == 0)
        let path = folder.file("pipe")
        #expect(throws: AccessLogError.open(path: path, code: ENXIO)) {
            _ = try AccessLog(
                path: path, format: .json, workers: 1, labels: LoggedRequest.labels)
        }
    }

    @Test func `lines beyond the queue are dropped and counted, those within arrive`() throws {
        let pipe = try Pipe()
        let log = try open(pipe)
        let logged = fill(log, pipe)
        // From here on the pipe is read: everything that was queued arrives intact.
        var received: [UInt8] = []
        eventually("all that was not dropped arrives") {
            received += pipe.read()
            let figures = log.lines
            return figures.written + figures.dropped == logged
        }
        #expect(log.close(withinMilliseconds: 10_000))
        received += pipe.read()
        let lines = String(decoding: received, as: UTF8.self).split(separator: "\n")
        #expect(UInt64(lines.count) == log.lines.written)
        #expect(log.lines.dropped > 0)
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            #expect(object is [String: Any])
        }
    }

    @Test func `closing is bounded while there is no reader, and counts what is lost`() throws {
        let pipe = try Pipe()
        let log = try open(pipe)
        let logged = fill(log, pipe)
        let start = ContinuousClock.now
        #expect(!log.close(withinMilliseconds: 50))
        let took = ContinuousClock.now - start
        #expect(took >= .milliseconds(40))
        #expect(took < .seconds(5))
        #expect(log.lines.written + log.lines.dropped == logged)
        // What counts as written is in the pipe, complete. A line of which the full pipe accepted
        // only a part is lost, even if there was space to complete it afterwards.
        let whole = pipe.read().split(separator: UInt8(ascii: "\n")).count { line in
            (try? JSONSerialization.jsonObject(with: Data(line))) is [String: Any]
        }
        #expect(UInt64(whole) == log.lines.written)
    }

    @Test func `a reopen succeeds while there is no reader, and starts with a whole line`() throws {
        let pipe = try Pipe()
        let log = try open(pipe)
        var logged = fill(log, pipe)
        let path = pipe.folder.file("plain.log")
        log.reconfigure(path: path, format: .json, labels: LoggedRequest.labels)
        eventually("the queue is written to the new file") {
            log.lines.written + log.lines.dropped == logged
        }
        logged += 1
        log.producers[0].log(LoggedRequest.record(logged))
        #expect(log.close(withinMilliseconds: 10_000))
        #expect(log.lines.written + log.lines.dropped == logged)
        let lines = pipe.folder.lines("plain.log")
        #expect(!lines.isEmpty)
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            #expect(object is [String: Any])
        }
        let inPipe = String(decoding: pipe.read(), as: UTF8.self).filter { $0 == "\n" }.count
        #expect(UInt64(inPipe + lines.count) == log.lines.written)
    }

    @Test func `a reader that disappears is an error that drops lines, not a signal`() throws {
        let folder = TemporaryFolder()
        let path = folder.file("pipe")
        try #require(mkfifo(path, 0o600) == 0)
        let reader = open_with_mode(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0)
        try #require(reader >= 0)
        let events = Locked<[AccessLogEvent]>([])
        var limits = FlowQueueLimits()
        limits.flushMilliseconds = 1
        let log = try AccessLog(
            path: path, format: .json, workers: 1, labels: LoggedRequest.labels, limits: limits
        ) { event in events.withLock { $0.append(event) } }
        _ = CLinux.close(reader)
        log.producers[0].log(LoggedRequest.record())
        eventually("the line is dropped") { log.lines.dropped == 1 }
        log.close(withinMilliseconds: 10_000)
        #expect(events.withLock { $0 } == [.writeFailed(code: EPIPE)])
    }
}
