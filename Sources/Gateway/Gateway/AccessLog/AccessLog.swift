import CLinux
import HTTPCore
import Locking
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics

/// The access log: one line per exchange, formatted and written by a dedicated thread.
///
/// A worker copies a record of numbers and a few texts into its own ring (`AccessLogProducer.log`),
/// without a lock or a system call except the one that wakes a sleeping log. The thread
/// `access-log` collects the rings every `flushMilliseconds`, formats the records as lines and
/// writes them. If it cannot keep up, because the disk is slow or a pipe is not read, the rings
/// fill up and further lines are dropped and counted: no request waits for its log line.
///
/// The lines of one worker are in the order in which its exchanges ended; those of different
/// workers need not be.
package final class AccessLog: Sendable {
    private let core: AccessLogCore
    /// One per worker, by the worker's index; each may be used only by that worker's thread.
    package let producers: [AccessLogProducer]

    /// Opens the file and starts the thread.
    ///
    /// - Parameters:
    ///   - path: the file, created (mode 0640) if necessary and appended to; `-` and `stdout` mean
    ///     standard output, `stderr` standard error.
    ///   - format: how lines are written.
    ///   - fields: what a JSON line tells, in this order; empty for everything.
    ///   - workers: the number of producers.
    ///   - labels: the names for the records' indexes.
    ///   - onEvent: called on the log's thread.
    package init(
        path: String, format: AccessLogFormat, fields: [AccessLogField] = [], workers: Int,
        labels: AccessLogLabels, limits: FlowQueueLimits = FlowQueueLimits(),
        onEvent: @escaping @Sendable (AccessLogEvent) -> Void = { _ in }
    ) throws(AccessLogError) {
        let file = try AccessLogFile(path: path)
        let core = try AccessLogCore(
            request: AccessLogRequest(
                path: path, format: format, fields: fields, labels: labels),
            workers: workers, limits: limits, onEvent: onEvent)
        self.core = core
        producers = core.rings.map { AccessLogProducer(ring: $0, core: core) }
        // The thread takes over the file when it starts.
        let handover = Locked<AccessLogFile?>(file)
        try core.start {
            guard let file = handover.withLock({ $0.take() }) else { return }
            AccessLogWriter(core: core, file: file).run()
        }
    }

    /// Reopens the file at the same path: for use after it was renamed (log rotation). A line that
    /// is logged after this returns is in the new file. Can be called from any thread, but not from
    /// a signal handler.
    package func reopen() {
        core.change { $0.reopen = true }
    }

    /// Applies settings that a reload may have changed; the file is reopened. From any thread.
    package func reconfigure(
        path: String, format: AccessLogFormat, fields: [AccessLogField] = [],
        labels: AccessLogLabels
    ) {
        core.change {
            $0.path = path
            $0.format = format
            $0.fields = fields
            $0.labels = labels
            $0.reopen = true
        }
    }

    /// Applies the names of another configuration. From any thread.
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
    package var lines: AccessLogLines { core.lines }

    deinit { _ = core.close(withinMilliseconds: 0) }
}

/// One worker's end of the access log; may be used only by that worker's thread.
package final class AccessLogProducer: Sendable {
    private let ring: FlowQueue
    private let core: AccessLogCore

    init(ring: FlowQueue, core: AccessLogCore) {
        self.ring = ring
        self.core = core
    }

    /// Logs an exchange that has ended. `texts` are ranges in `head`, the bytes of the request's
    /// head; they are copied. Never waits: if there is no space, the line is dropped and counted.
    ///
    /// - Parameters:
    ///   - session: the TLS session of the client, if any; its texts are copied too.
    ///   - notes: who was asking, and what rules did; copied too.
    package func log(
        _ record: FlowRecord, head: Span<UInt8>, texts: FlowTexts,
        session: ClientSession? = nil, notes: FlowNotes = FlowNotes()
    ) {
        switch ring.push(record, head: head, texts, session: session, notes: notes) {
        case .queued: core.wakeIfSleeping()
        case .queuedHalfFull: core.wake()
        case .refused: break
        }
    }
}
