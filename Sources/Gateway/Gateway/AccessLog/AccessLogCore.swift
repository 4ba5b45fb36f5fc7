import CLinux
import Clocks
import Locking
import PinfoldConfiguration
import Synchronization
import Threads

/// What the access log's thread should write, and where.
struct AccessLogRequest: Sendable {
    var path: String
    var format: AccessLogFormat
    /// What a JSON line tells, in this order; empty for everything.
    var fields: [AccessLogField] = []
    var labels: AccessLogLabels
    var reopen = false
}

/// The state shared by the access log's threads: the rings, the wake-up, the requests and the
/// counters.
final class AccessLogCore: Sendable {
    /// By how much closing may exceed the given time: for the thread to be scheduled and to count
    /// what it drops. Only a write that hangs in the kernel uses it up.
    static let closingSlackMilliseconds = 1000

    let rings: [FlowQueue]
    let limits: FlowQueueLimits
    let onEvent: @Sendable (AccessLogEvent) -> Void
    /// Wakes the log's thread.
    let bell: WakeDescriptor
    private let done: WakeDescriptor
    private let thread = Locked<Thread?>(nil)
    private let isSleeping = Atomic<Bool>(false)
    private let changes = Atomic<UInt64>(0)
    private let request: Locked<AccessLogRequest>
    /// When closing must be complete, on the monotonic clock; `Int64.max` while not closing.
    private let deadline = Atomic<Int64>(.max)
    private let isAbandoned = Atomic<Bool>(false)
    private let written = Atomic<UInt64>(0)
    private let failed = Atomic<UInt64>(0)

    init(
        request: AccessLogRequest, workers: Int, limits: FlowQueueLimits,
        onEvent: @escaping @Sendable (AccessLogEvent) -> Void
    ) throws(AccessLogError) {
        bell = try WakeDescriptor()
        done = try WakeDescriptor()
        rings = (0..<workers).map { _ in FlowQueue(limits: limits) }
        self.limits = limits
        self.onEvent = onEvent
        self.request = Locked(request)
    }

    deinit {
        for ring in rings { ring.deallocate() }
    }

    /// Starts the thread; it keeps this object alive until it ends.
    func start(_ body: @escaping @Sendable () -> Void) throws(AccessLogError) {
        do {
            let started = try Thread(name: "access-log") {
                body()
                self.done.signal()
            }
            thread.withLock { $0 = started }
        } catch {
            throw .thread(code: error.code)
        }
    }

    // MARK: For the producers

    /// Wakes the log's thread if it is sleeping because there are no records. The ring's head was
    /// stored with sequential consistency before: either this sees the sleeper, or the sleeper sees
    /// the record.
    @inline(__always)
    func wakeIfSleeping() {
        guard isSleeping.load(ordering: .sequentiallyConsistent) else { return }
        if isSleeping.exchange(false, ordering: .relaxed) { bell.signal() }
    }

    /// Wakes the log's thread whatever it is waiting for.
    func wake() { bell.signal() }

    // MARK: For the log's thread

    /// Waits without limit for a record, a request or closing.
    func sleep() {
        isSleeping.store(true, ordering: .sequentiallyConsistent)
        if rings.allSatisfy(\.isEmpty) { bell.wait(milliseconds: -1) }
        isSleeping.store(false, ordering: .relaxed)
    }

    /// How many changes have been requested.
    var changeCount: UInt64 { changes.load(ordering: .acquiring) }

    /// The latest request, without marking it as handled.
    var latestRequest: AccessLogRequest { request.withLock { $0 } }

    /// The latest request; marks its `reopen` as done.
    func takeRequest() -> AccessLogRequest {
        request.withLock { request in
            defer { request.reopen = false }
            return request
        }
    }

    /// Whether the log is being closed.
    var isClosing: Bool { deadline.load(ordering: .acquiring) != .max }

    /// Milliseconds left for closing, 0 if none; -1 (no limit, for poll) while not closing.
    var remainingMilliseconds: Int {
        let deadline = self.deadline.load(ordering: .relaxed)
        guard deadline != .max else { return -1 }
        return Int(clamping: max(0, deadline - Clock.monotonicMilliseconds()))
    }

    /// Counts lines that were written.
    func countWritten(_ lines: Int) {
        written.wrappingAdd(UInt64(lines), ordering: .relaxed)
    }

    /// Counts lines that were taken from the rings but could not be written.
    func countFailed(_ lines: Int) {
        failed.wrappingAdd(UInt64(lines), ordering: .relaxed)
    }

    // MARK: For the owner

    /// Changes what the thread should do.
    func change(_ body: (inout AccessLogRequest) -> Void) {
        request.withLock { body(&$0) }
        changes.wrappingAdd(1, ordering: .releasing)
        bell.signal()
    }

    /// Makes the thread write what it can in the given time and end. Returns whether all was
    /// written.
    func close(withinMilliseconds milliseconds: Int) -> Bool {
        guard let thread = thread.withLock({ $0.take() }) else { return false }
        let dropped = lines.dropped
        let milliseconds = max(0, milliseconds)
        deadline.store(Clock.monotonicMilliseconds() + Int64(milliseconds), ordering: .releasing)
        bell.signal()
        guard done.wait(milliseconds: milliseconds + AccessLogCore.closingSlackMilliseconds) else {
            // The thread hangs in a write that the kernel does not return from; the process
            // continues without it.
            isAbandoned.store(true, ordering: .relaxed)
            return false
        }
        thread.join()
        return lines.dropped == dropped
    }

    var lines: AccessLogLines {
        var lines = AccessLogLines()
        var pushed: UInt64 = 0
        for ring in rings {
            lines.dropped += ring.refused
            pushed += ring.pushed
        }
        lines.written = written.load(ordering: .relaxed)
        let failed = self.failed.load(ordering: .relaxed)
        lines.dropped += failed
        if isAbandoned.load(ordering: .relaxed), pushed > lines.written + failed {
            lines.dropped += pushed - lines.written - failed
        }
        return lines
    }
}

/// The access log's lines since the start, by result.
package struct AccessLogLines: Sendable, Equatable {
    package var written: UInt64 = 0
    /// The queue was full, or writing failed.
    package var dropped: UInt64 = 0
}
