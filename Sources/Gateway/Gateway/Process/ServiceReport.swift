import CLinux
import Clocks
import EventLoop
import Logging
import PinfoldConfiguration
import Supervision
import Threads

/// What the gateway tells the service manager that started it, if one did: when it is ready, when
/// it reloads, that it stops, and at any time what it is doing. Belongs to the main thread.
struct ServiceReport {
    let manager: ServiceManager?
    /// The last status that was sent, and when (monotonic milliseconds).
    private var status = ""
    private var statusTime: Int64 = 0
    /// The number of listeners, for the status while it serves.
    private var listeners = 0
    /// The reload under way ends when all workers follow this configuration; `nil` if none is.
    private var awaitedGeneration: UInt64?
    private var watchdog: Watchdog?
    private var isHandedOver = false
    /// How often a status that only counts is sent at most.
    private static let countingMilliseconds: Int64 = 500

    init(_ manager: ServiceManager?) { self.manager = manager }

    /// Whether anybody is told.
    var isHeard: Bool { manager != nil }

    /// Whether a reload has been announced, and not its end.
    var isReloading: Bool { awaitedGeneration != nil }

    // MARK: The start

    /// The start goes on with this.
    mutating func starting(_ what: String) { send([], status: "starting: " + what) }

    /// Every listener accepts, and the configuration is in force.
    mutating func ready(listeners: Int) {
        self.listeners = listeners
        send([.ready], status: serving)
    }

    private var serving: String {
        "serving on \(listeners) \(listeners == 1 ? "listener" : "listeners")"
    }

    /// Feeds the manager's watchdog from now on, if it has one.
    mutating func startWatchdog(
        _ shared: SharedServices, _ mailboxes: [Mailbox<WorkerMessage>], _ logger: Logger
    ) throws(Thread.StartError) {
        guard let manager else { return }
        watchdog = try Watchdog(
            manager, turns: shared.turns, mailboxes: mailboxes, logger: logger)
    }

    // MARK: A reload

    /// A reload begins.
    mutating func reloading() {
        guard manager != nil else { return }
        // What another one waits for is older.
        awaitedGeneration = nil
        send(
            [.reloading(monotonicMicroseconds: Clock.monotonicMicroseconds())],
            status: "reloading the configuration")
    }

    /// A reload succeeded: it is complete when all workers follow it.
    mutating func reloaded(generation: UInt64, listeners: Int) {
        guard manager != nil else { return }
        self.listeners = listeners
        awaitedGeneration = generation
    }

    /// A reload failed.
    mutating func notReloaded() {
        send([.ready], status: serving + "; the last reload failed: see the log")
    }

    /// Ends a reload if all workers follow a configuration that is as recent.
    mutating func workersFollow(generation: UInt64) {
        guard let awaitedGeneration, generation >= awaitedGeneration else { return }
        self.awaitedGeneration = nil
        send([.ready], status: serving)
    }

    // MARK: A successor

    /// Another process is the service.
    mutating func handOver(to pid: pid_t) {
        // What the other process has said so far was not heard: it was not the main process.
        send([.mainProcess(pid), .ready, .watchdog], status: serving)
        isHandedOver = true
    }

    /// This process is the service again.
    mutating func takeBack() {
        isHandedOver = false
        send([.mainProcess(getpid())], status: serving)
    }

    // MARK: The end

    /// The gateway ends, within this time.
    mutating func stopping(withinMilliseconds milliseconds: Int64) {
        send(
            [.stopping, .extendTimeout(microseconds: milliseconds * 1000)], status: "draining")
    }

    /// What it still waits for.
    /// - Parameter remaining: milliseconds that it waits at most.
    mutating func draining(_ what: String, remaining: Int64) {
        let seconds = max(0, remaining + 999) / 1000
        count("draining: \(what); up to \(seconds)s")
    }

    /// The workers have been told to end, or have ended.
    mutating func workersEnd(_ shared: SharedServices?) {
        shared?.turns.end()
        send([], status: "stopping: closing the logs and the cache")
    }

    /// Ends what runs here.
    mutating func close() { watchdog.take()?.close() }

    // MARK: Sending

    private mutating func count(_ text: String) {
        let now = Clock.monotonicMilliseconds()
        guard text != status, now - statusTime >= Self.countingMilliseconds else { return }
        send([], status: text)
    }

    private mutating func send(_ assignments: [ServiceManager.Assignment], status text: String) {
        guard let manager, !isHandedOver else { return }
        status = text
        statusTime = Clock.monotonicMilliseconds()
        manager.send(assignments + [.status(text)])
    }
}
