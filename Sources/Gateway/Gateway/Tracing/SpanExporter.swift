import Clocks
import EventLoop
import HTTPCore
import Locking
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import PinfoldTLS
import Threads

/// Sends the spans of sampled exchanges to a collector (`tracing.otlp`): by OTLP over HTTP, in
/// batches, from a thread of its own, which begins when there is a collector for the first time.
///
/// A worker copies the record of an exchange into its own ring, as for the access log. If the
/// collector is slow or down, the rings fill up, and further exchanges are dropped and counted: no
/// request waits for its span.
package final class SpanExporter: Sendable {
    /// Where spans go.
    struct Settings: Sendable {
        var destination: ReportDestination
        /// How the collector is verified, if it uses TLS; it must have no pinsets.
        var context: TLSClientContext
        /// The names for the records' indexes.
        var labels: AccessLogLabels
    }

    /// Why the thread could not be started.
    package enum StartError: Error, Sendable, CustomStringConvertible {
        case descriptor(Errno)
        case thread(Thread.StartError)

        package var description: String {
            let problem =
                switch self {
                case .descriptor(let error): "\(error)"
                case .thread(let error): "\(error)"
                }
            return "tracing: its thread cannot be started: \(problem)"
        }
    }

    private struct Running {
        let core: SpanExporterCore
        let thread: Thread
        let producers: [SpanProducer]
    }

    private let workers: Int
    private let version: String
    private let resolver: Resolver
    private let onEvent: @Sendable (SpanExportEvent) -> Void
    /// `nil` until there is a collector.
    private let running = Locked<Running?>(nil)

    /// - Parameters:
    ///   - version: the program's.
    ///   - onEvent: receives events for the operator; called on the thread.
    package init(
        workers: Int, version: String, resolver: Resolver,
        onEvent: @escaping @Sendable (SpanExportEvent) -> Void
    ) {
        self.workers = workers
        self.version = version
        self.resolver = resolver
        self.onEvent = onEvent
    }

    /// Starts the thread if a configuration is the first one with a collector.
    /// - Parameter settings: `nil` for no collector.
    func prepare(for settings: Settings?) throws(StartError) {
        guard let settings, running.withLock({ $0 == nil }) else { return }
        let started = try start(settings)
        running.withLock { $0 = started }
    }

    /// Applies a configuration that it is prepared for, before any worker does.
    func configure(_ settings: Settings?) { running.withLock { $0?.core }?.configure(settings) }

    private func start(_ settings: Settings) throws(StartError) -> Running {
        let core: SpanExporterCore
        let loop: ReporterLoop
        do throws(Errno) {
            core = SpanExporterCore(
                settings: settings, workers: workers, wakes: try Mailbox(), onEvent: onEvent)
            loop = try ReporterLoop(wokenBy: core.wakes)
        } catch {
            throw .descriptor(error)
        }
        do throws(Thread.StartError) {
            // Handed over to the thread, and used by nothing else after that.
            nonisolated(unsafe) let loop = loop
            let thread = try Thread(name: "traces", niceness: 5) { [core, resolver, version] in
                SpanDelivery(core: core, loop: loop, resolver: resolver, version: version).run()
            }
            return Running(
                core: core, thread: thread,
                producers: core.rings.map { SpanProducer(ring: $0, core: core) })
        } catch {
            throw .thread(error)
        }
    }

    /// A worker's end; `nil` if there has been no collector yet.
    func producer(_ worker: Int) -> SpanProducer? {
        running.withLock { running in
            guard let running, running.producers.indices.contains(worker) else { return nil }
            return running.producers[worker]
        }
    }

    /// The counts so far.
    package var statistics: SpanStatistics {
        running.withLock { $0?.core }?.statistics ?? SpanStatistics()
    }

    /// Sends what is waiting, and ends the thread, in at most this time: what has not been sent by
    /// then is counted as failed. Workers should have stopped before.
    package func close(withinMilliseconds milliseconds: Int64) {
        guard let running = running.withLock({ $0.take() }) else { return }
        if running.core.close(withinMilliseconds: milliseconds) {
            running.thread.join()
        } else {
            running.thread.detach()
        }
    }
}

/// One worker's end of the exporter; may be used only by that worker's thread.
final class SpanProducer: Sendable {
    private let ring: FlowQueue
    private let core: SpanExporterCore

    init(ring: FlowQueue, core: SpanExporterCore) {
        self.ring = ring
        self.core = core
    }

    /// Takes an exchange that has ended. Never waits: if there is no space, it is dropped and
    /// counted.
    func record(
        _ record: FlowRecord, head: Span<UInt8>, texts: FlowTexts, session: ClientSession?,
        notes: FlowNotes
    ) {
        // It looks for itself every second.
        if ring.push(record, head: head, texts, session: session, notes: notes) == .queuedHalfFull {
            core.wakes.post(())
        }
    }
}

/// What has become of spans since the start.
package struct SpanStatistics: Sendable, Equatable {
    /// Spans that the collector accepted.
    package var exported: UInt64 = 0
    /// Spans that it refused.
    package var rejected: UInt64 = 0
    /// Spans that could not be sent.
    package var failed: UInt64 = 0
    /// Attempts that failed and were to be repeated.
    package var retries: UInt64 = 0
    /// Exchanges whose spans were dropped, because the queue was full.
    package var droppedExchanges: UInt64 = 0
}

/// What the exporter's thread reports for the operational log.
package enum SpanExportEvent: Sendable, Equatable {
    /// The collector cannot be reached, or does not accept spans at the moment. Reported once until
    /// it does.
    case failing(destination: String, problem: String)
    /// It accepts spans again.
    case recovered(destination: String)
    /// It refused spans, which are lost; `problem` says why. Reported once until it accepts some.
    case rejected(destination: String, spans: UInt64, problem: String)
}

/// The state that the exporter's thread shares with the others.
final class SpanExporterCore: Sendable {
    let rings: [FlowQueue]
    /// Tells the thread that it has something to do.
    let wakes: Mailbox<Void>
    let onEvent: @Sendable (SpanExportEvent) -> Void
    /// Whether the thread is done.
    private let ended = Monitor(false)
    private let state: Locked<State>

    private struct State {
        var settings: SpanExporter.Settings?
        var statistics = SpanStatistics()
        /// When everything must be over, in milliseconds of the monotonic clock; `nil` while it
        /// goes on.
        var deadline: Int64?
    }

    /// As much as the access log's, but without what no span has.
    private static var limits: FlowQueueLimits {
        var limits = FlowQueueLimits()
        limits.targetBytes = 2048
        limits.authorityBytes = 512
        limits.userAgentBytes = 512
        limits.refererBytes = 0
        return limits
    }

    init(
        settings: SpanExporter.Settings, workers: Int, wakes: Mailbox<Void>,
        onEvent: @escaping @Sendable (SpanExportEvent) -> Void
    ) {
        state = Locked(State(settings: settings))
        rings = (0..<workers).map { _ in FlowQueue(limits: Self.limits) }
        self.wakes = wakes
        self.onEvent = onEvent
    }

    deinit {
        for ring in rings { ring.deallocate() }
    }

    // MARK: For the owner

    func configure(_ settings: SpanExporter.Settings?) {
        state.withLock { $0.settings = settings }
        wakes.post(())
    }

    var statistics: SpanStatistics {
        var statistics = state.withLock { $0.statistics }
        for ring in rings { statistics.droppedExchanges += ring.refused }
        return statistics
    }

    /// Makes the thread end. Returns whether it has.
    func close(withinMilliseconds milliseconds: Int64) -> Bool {
        let begun = Clock.monotonicNanoseconds()
        state.withLock { $0.deadline = begun / 1_000_000 + milliseconds }
        wakes.post(())
        // A turn of its loop longer, in which it gives up.
        let end = begun + (milliseconds + 500) * 1_000_000
        return ended.wait { hasEnded in
            if hasEnded { return .done(true) }
            return Clock.monotonicNanoseconds() >= end ? .done(false) : .until(end)
        }
    }

    // MARK: For the thread

    var settings: SpanExporter.Settings? { state.withLock { $0.settings } }

    var deadline: Int64? { state.withLock { $0.deadline } }

    func count(_ change: (inout SpanStatistics) -> Void) {
        state.withLock { change(&$0.statistics) }
    }

    func end() {
        ended.withLock { $0 = true }
        ended.broadcast()
    }
}
