import CLinux
import Clocks
import Locking
import Logging
import PinfoldConfiguration
import PinfoldMetrics
import Synchronization
import Threads

/// The operational log: lines for the operator on standard error, written by a dedicated thread.
///
/// A line is formatted on the thread that logs it and put into a queue of at most `queueBytes`; the
/// thread `log` writes it. If nobody reads (a pipe whose collector hangs, a stopped terminal) the
/// queue fills up, and further lines are dropped and counted: neither a request nor a signal waits
/// for the log. The same message from the same cause is written at most a few times per second
/// (`LogLimiter`); at level debug there is no limit.
package final class OperationalLog: Sendable {
    /// The maximum number of bytes waiting to be written.
    static let queueBytes = 1 << 20
    /// By how much closing may exceed the given time: for the thread to be scheduled.
    private static let closingSlackMilliseconds: Int64 = 200

    private struct State {
        var lines: [UInt8] = []
        var lineCount: UInt64 = 0
        var limiter = LogLimiter()
        var format: LogLine
        /// Lines dropped since the last one that was queued.
        var lost: UInt64 = 0
        /// When closing must be complete, on the monotonic clock; `nil` while not closing.
        var deadline: Int64?
        var isClosed = false
    }

    /// Lines that the thread writes together.
    struct Batch {
        var bytes: [UInt8]
        var lineCount: UInt64
    }

    private let state: Monitor<State>
    private let level: Atomic<Int>
    private let written = Atomic<UInt64>(0)
    private let dropped = Atomic<UInt64>(0)
    private let suppressed = Atomic<UInt64>(0)
    private let thread = Locked<Thread?>(nil)
    /// The destination: standard error.
    private let path: String

    /// - Parameters:
    ///   - format: how lines are written.
    ///   - path: a file, `stdout` or `stderr`.
    ///   - hasPriorities: whether each line begins with its level in the form that the journal
    ///     reads (sd-daemon(3)).
    package init(
        level: Logger.Level, format: LogConfiguration.Format = .text, path: String = "stderr",
        hasPriorities: Bool = false
    ) {
        self.level = Atomic(level.index)
        state = Monitor(State(format: LogLine(format: format, hasPriorities: hasPriorities)))
        self.path = path
    }

    /// Starts the thread, which also writes what was logged before.
    package func start() throws(AccessLogError) {
        let file = Locked<AccessLogFile?>(try AccessLogFile(path: path))
        do {
            let started = try Thread(name: "log") {
                guard let file = file.withLock({ $0.take() }) else { return }
                LogWriter(log: self, file: file).run()
                self.ended()
            }
            thread.withLock { $0 = started }
        } catch {
            throw .thread(code: error.code)
        }
    }

    /// A logger that writes here.
    package func logger(label: String) -> Logger {
        Logger(label: label) { _ in OperationalLogHandler(log: self) }
    }

    /// The least severe level that is logged; can be changed from any thread, effective at once.
    package var logLevel: Logger.Level {
        get { Logger.Level.allCases[level.load(ordering: .relaxed)] }
        set { level.store(newValue.index, ordering: .relaxed) }
    }

    /// How the lines are written that are logged from now on; can be changed from any thread.
    package var format: LogConfiguration.Format {
        get { state.withLock { $0.format.format } }
        set { state.withLock { $0.format.format = newValue } }
    }

    /// Lines written, dropped and suppressed since the start.
    package var lines: OperationalLogLines {
        OperationalLogLines(
            written: written.load(ordering: .relaxed), dropped: dropped.load(ordering: .relaxed),
            suppressed: suppressed.load(ordering: .relaxed))
    }

    /// Queues a line, unless there were too many like it or there is no space. Never waits.
    /// `metadata` is evaluated only if the line is written.
    package func write(
        _ message: String, level: Logger.Level, reason: String = "", subject: String = "",
        metadata: () -> Logger.Metadata
    ) {
        guard level >= logLevel else { return }
        let cause = LogLimiter.Cause(message: message, reason: reason, subject: subject)
        let now = Clock.monotonicMilliseconds()
        let isAdmitted = level <= .debug || admits(cause, level: level, now: now)
        guard isAdmitted else { return }
        let metadata = metadata()
        let wall = Clock.wallMilliseconds()
        state.withLock { state in
            guard !state.isClosed else { return drop(1) }
            enqueue(message, level: level, metadata: metadata, wall: wall, &state)
        }
        state.signal()
    }

    private func admits(_ cause: LogLimiter.Cause, level: Logger.Level, now: Int64) -> Bool {
        state.withLock { state in
            report(state.limiter.ended(at: now), &state)
            let isAdmitted = state.limiter.admits(cause, level: level, now: now)
            if !isAdmitted { suppressed.wrappingAdd(1, ordering: .relaxed) }
            return isAdmitted
        }
    }

    private func report(_ ended: [LogLimiter.Suppressed], _ state: inout State) {
        guard !ended.isEmpty else { return }
        let wall = Clock.wallMilliseconds()
        for one in ended {
            var metadata: Logger.Metadata = [:]
            if !one.cause.reason.isEmpty { metadata["reason"] = "\(one.cause.reason)" }
            if !one.cause.subject.isEmpty { metadata["subject"] = "\(one.cause.subject)" }
            enqueue(
                one.cause.message, more: one.count, level: one.level, metadata: metadata,
                wall: wall, &state)
        }
    }

    /// Appends a line to the queue, or drops it.
    private func enqueue(
        _ message: String, more: UInt64 = 0, level: Logger.Level, metadata: Logger.Metadata,
        wall: Int64, _ state: inout State
    ) {
        guard state.lines.count + LogLine.maximumBytes <= Self.queueBytes else {
            state.lost += 1
            return drop(1)
        }
        if state.lost > 0 {
            let lost = state.lost
            state.lost = 0
            state.format.append(
                "log lines were dropped", level: .warning, metadata: ["lines": "\(lost)"],
                wallMilliseconds: wall, to: &state.lines)
            state.lineCount += 1
        }
        state.format.append(
            message, more: more, level: level, metadata: metadata, wallMilliseconds: wall,
            to: &state.lines)
        state.lineCount += 1
    }

    // MARK: For the thread

    /// The queued lines, once there are some; `nil` when the log is closed and empty.
    func next() -> Batch? {
        state.wait { state in
            if state.lines.isEmpty {
                report(state.limiter.ended(at: Clock.monotonicMilliseconds()), &state)
            }
            if !state.lines.isEmpty {
                let batch = Batch(bytes: state.lines, lineCount: state.lineCount)
                state.lines = []
                state.lineCount = 0
                return .done(batch)
            }
            if state.deadline != nil { return .done(nil) }
            let end = state.limiter.nextEnd
            return end == .max ? .signal : .until(end * 1_000_000)
        }
    }

    /// How long the thread may still wait for the file; `nil` for no limit.
    var remainingMilliseconds: Int64? {
        state.withLock { $0.deadline }.map { max(0, $0 - Clock.monotonicMilliseconds()) }
    }

    func countWritten(_ lines: UInt64) { written.wrappingAdd(lines, ordering: .relaxed) }

    func drop(_ lines: UInt64) { dropped.wrappingAdd(lines, ordering: .relaxed) }

    private func ended() {
        state.withLock { $0.isClosed = true }
        state.broadcast()
    }

    // MARK: The end

    /// Writes what is queued within the given time, and ends the thread. What cannot be written by
    /// then is dropped.
    package func close(withinMilliseconds milliseconds: Int64) {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        let deadline = Clock.monotonicMilliseconds() + max(0, milliseconds)
        state.withLock { $0.deadline = deadline }
        state.broadcast()
        let end = deadline + Self.closingSlackMilliseconds
        let hasEnded = state.wait { state in
            if state.isClosed { return .done(true) }
            return Clock.monotonicMilliseconds() >= end ? .done(false) : .until(end * 1_000_000)
        }
        // Otherwise it hangs in a write that the kernel does not return from, and the process
        // continues without it.
        if hasEnded { thread.join() }
    }
}

extension Logger.Level {
    /// Its position among all levels, least severe first.
    fileprivate var index: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// The operational log's lines since the start, by result.
package struct OperationalLogLines: Sendable, Equatable {
    package var written: UInt64 = 0
    /// The queue was full, or writing failed.
    package var dropped: UInt64 = 0
    /// Messages not written because there were too many similar ones; their number was written.
    package var suppressed: UInt64 = 0
}
