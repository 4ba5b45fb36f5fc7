import CLinux
import HTTPCore
import Locking
import PinfoldEngine
import PinfoldMetrics

/// The access log: one line per exchange, made and written by a thread of its own.
///
/// A worker copies a record of numbers and a few texts into its own ring (`AccessLogProducer.log`):
/// no lock, no system call but the one that wakes a sleeping log. The thread `access-log` collects
/// the rings every `flushMilliseconds`, makes lines of the records and writes them. When it cannot
/// keep up, because the disk is slow or a pipe is not read, the rings fill up and further lines are
/// dropped and counted: no request waits for its log line.
///
/// Lines of one worker are in the order in which its exchanges ended; between workers they are not.
package final class AccessLog: Sendable {
    private let core: AccessLogCore
    /// One per worker, by the worker's index; each is for the use of that thread only.
    package let producers: [AccessLogProducer]

    /// Opens the file and starts the thread.
    ///
    /// - Parameters:
    ///   - path: the file, created (mode 0640) if need be and appended to; `-` and `stdout` are the
    ///     standard output, `stderr` the standard error.
    ///   - format: how lines are written.
    ///   - workers: how many producers there are.
    ///   - labels: the names behind the records' indexes.
    ///   - onEvent: called on the log's thread.
    package init(
        path: String, format: AccessLogFormat, workers: Int, labels: AccessLogLabels,
        limits: AccessLogLimits = AccessLogLimits(),
        onEvent: @escaping @Sendable (AccessLogEvent) -> Void = { _ in }
    ) throws(AccessLogError) {
        let file = try AccessLogFile(path: path)
        let core = try AccessLogCore(
            request: AccessLogRequest(path: path, format: format, labels: labels),
            workers: workers, limits: limits, onEvent: onEvent)
        self.core = core
        producers = core.rings.map { AccessLogProducer(ring: $0, core: core) }
        // The thread takes the file over when it starts.
        let handover = Locked<AccessLogFile?>(file)
        try core.start {
            guard let file = handover.withLock({ $0.take() }) else { return }
            AccessLogWriter(core: core, file: file).run()
        }
    }

    /// Opens the file anew, at the same path: for use after it was renamed (log rotation). A line
    /// that is logged after this returns is in the new file. From any thread; not from a signal
    /// handler.
    package func reopen() {
        core.change { $0.reopen = true }
    }

    /// Takes over what a reload may have changed; the file is opened anew. From any thread.
    package func reconfigure(path: String, format: AccessLogFormat, labels: AccessLogLabels) {
        core.change {
            $0.path = path
            $0.format = format
            $0.labels = labels
            $0.reopen = true
        }
    }

    /// Takes over the names of another configuration. From any thread.
    package func rename(_ labels: AccessLogLabels) {
        core.change { $0.labels = labels }
    }

    /// Writes what is queued, closes the file and ends the thread, in at most `milliseconds` (and a
    /// second more if the kernel does not return from a write); lines that cannot be written by
    /// then are dropped and counted. Producers should have stopped before: what they log later is
    /// lost. Returns whether everything was written.
    @discardableResult
    package func close(withinMilliseconds milliseconds: Int) -> Bool {
        core.close(withinMilliseconds: milliseconds)
    }

    /// Lines written and dropped since the start; from any thread.
    package var figures: AccessLogFigures { core.figures }

    deinit { _ = core.close(withinMilliseconds: 0) }
}

/// One worker's end of the access log, for use by that worker's thread only.
package final class AccessLogProducer: Sendable {
    private let ring: AccessLogRing
    private let core: AccessLogCore

    init(ring: AccessLogRing, core: AccessLogCore) {
        self.ring = ring
        self.core = core
    }

    /// Logs an exchange that has ended. `texts` lie in `head`, the bytes of the request's head;
    /// they are copied. Never waits: without room, the line is dropped and counted.
    ///
    /// - Parameter session: of a client that speaks TLS; its texts are copied too.
    package func log(
        _ record: AccessLogRecord, head: Span<UInt8>, texts: AccessLogTexts,
        session: ClientSession? = nil, steps: [UInt8] = []
    ) {
        switch ring.push(record, head: head, texts, session: session, steps: steps) {
        case .queued: core.wakeIfSleeping()
        case .queuedHalfFull: core.wake()
        case .refused: break
        }
    }
}
