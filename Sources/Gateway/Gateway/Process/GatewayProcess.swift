import Activity
import CLinux
import CacheStore
import Clocks
import EventLoop
import JSONSchema
import Logging
import PasswordChecks
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import PinfoldResolver
import PinfoldTLS
import Supervision

/// The running gateway: starts everything, handles the process's signals, reloads, and shuts
/// everything down. Belongs to the main thread.
package final class GatewayProcess {
    /// Reads and validates the configuration again. The lists in force are used again where their
    /// files have not changed.
    package typealias Load =
        @Sendable (_ lists: [AccessList]) throws(ConfigurationErrors) -> LoadedConfiguration

    private let load: Load
    private let signals = SignalSet()
    private let operationalLog: OperationalLog
    let logger: Logger
    var configuration: ConfigurationSnapshot
    private let startWarnings: [ConfigurationWarning]
    /// What was derived from `configuration`; `nil` before the start.
    private var policy: PolicySnapshot?
    let published: PublishedState
    private let labels = RouteLabels()
    private let sessions = TLSSessionCache()
    private let ticketKeys = TLSTicketKeys(now: Clock.bootMilliseconds)
    /// Created with the first configuration that has an authority.
    private var issuer: CertificateIssuer?
    var watched = WatchedFiles()
    /// The changed files that are being read, or `nil` if none are.
    var reading: FileReading?
    /// By the names of host entries.
    private var reachability: [String: EntryReachability] = [:]
    let sockets: ListenerSockets
    /// The listeners that have been logged and still exist.
    var announced: Set<String> = []
    let workerCount: Int
    private let running = RunningWorkers()
    var runningWorkers: Int { running.count }
    var service: ServiceReport
    private let contents: ContentServices
    private let passwords: PasswordChecker
    private(set) var mailboxes: [Mailbox<WorkerMessage>] = []
    private(set) var shared: SharedServices?

    /// The time limit for writing the rest of the operational log at the end.
    private static let logFlushMilliseconds: Int64 = 1000

    /// - Parameters:
    ///   - loaded: the configuration to run, and the warnings about it.
    ///   - version: the program's version, for the build metric.
    ///   - revision: the commit it was built from, likewise.
    ///   - manager: the service manager that started the process; `nil` if none did.
    ///   - passed: the sockets that the manager passed.
    ///   - load: rereads the configuration, at SIGHUP.
    package init(
        loaded: LoadedConfiguration, version: String, revision: String,
        manager: ServiceManager? = nil, passed: [PassedSocket] = [], load: @escaping Load
    ) {
        let configuration = loaded.snapshot
        self.configuration = configuration
        startWarnings = loaded.warnings
        self.load = load
        operationalLog = OperationalLog(
            level: Logger.Level(configuration.log.level),
            hasPriorities: Journal.reads(STDERR_FILENO))
        service = ServiceReport(manager)
        logger = operationalLog.logger(label: "pinfold")
        published = PublishedState(
            version: version, revision: revision, log: operationalLog)
        workerCount = configuration.workers.count
        contents = ContentServices(workers: workerCount, logger: logger)
        passwords = PasswordChecker(cores: MachineShare.ofProcess().cores)
        sockets = ListenerSockets(workers: workerCount, routes: labels, passed: passed)
    }

    /// Runs until a signal ends the gateway; returns the process's exit code.
    package func run() throws -> Int32 {
        try operationalLog.start()
        defer { operationalLog.close(withinMilliseconds: Self.logFlushMilliseconds) }
        Descriptors.raiseLimit()
        logShare()
        closeUnusedSockets()
        service.starting("opening the listeners")
        let policy = try makePolicy(configuration, generation: 1)
        self.policy = policy
        let perWorker = try sockets.open(configuration)
        labels.activate(configuration)
        for _ in 0..<workerCount { mailboxes.append(try Mailbox<WorkerMessage>()) }
        service.starting("opening the cache")
        let shared = try makeServices(policy, notifying: mailboxes[0])
        self.shared = shared
        publishListeners(perWorker, to: shared)
        publish(configuration, policy)
        log(startWarnings)
        service.starting("waiting for the workers")
        try startWorkers(policy, perWorker, shared)
        guard workersTurn(shared) else { stopAtOnce(hasFailed: true) }
        announce(perWorker)
        watch(configuration)
        try service.startWatchdog(shared, mailboxes, logger)
        service.ready(listeners: configuration.listeners.count)
        control()
        // From here on nothing needs the main thread: another signal ends the process immediately.
        signals.restoreDefaults()
        shared.pinReporter?.close(withinMilliseconds: 2000)
        contents.close()
        passwords.close()
        issuer?.close()
        shared.resolver.close()
        shared.store?.close()
        shared.accessLog?.close(withinMilliseconds: 2000)
        published.end()
        service.close()
        logger.info("stopped")
        return 0
    }

    // MARK: Starting

    private func makePolicy(
        _ configuration: ConfigurationSnapshot, generation: UInt64
    ) throws -> PolicySnapshot {
        try PolicySnapshot(
            configuration, generation: generation, following: policy, sessions: sessions,
            ticketKeys: ticketKeys, issuer: issuer(for: configuration.interception),
            images: contents.images, schemas: JSONSchema.compile, labels: labels
        ) { label in
            if let known = reachability[label] { return known }
            let made = EntryReachability(label: label)
            reachability[label] = made
            return made
        }
    }

    /// The issuer of certificates; `nil` if nothing is intercepted.
    private func issuer(
        for interception: InterceptionConfiguration
    ) throws(CertificateIssuer.StartError) -> CertificateIssuer? {
        guard interception.authority != nil else { return nil }
        if let issuer {
            issuer.setMaximumCertificates(interception.maximumCertificates)
            return issuer
        }
        var options = IssuerOptions()
        options.maximumCertificates = interception.maximumCertificates
        let made = try CertificateIssuer(options: options)
        issuer = made
        published.issuer.withLock { $0 = made }
        return made
    }

    private func makeServices(
        _ policy: PolicySnapshot, notifying first: Mailbox<WorkerMessage>
    ) throws -> SharedServices {
        let activity = ActivityMonitor(
            delays: ActivityDelays(
                activationMilliseconds: configuration.activity.activationDelayMilliseconds,
                completionMilliseconds: configuration.activity.completionDelayMilliseconds))
        let published = published
        let site = AdminSite(
            source: AdminSource(
                metrics: { published.metrics() }, readiness: { published.readiness() }),
            version: published.version)
        let resolver = try Resolver(options: ResolverOptions(configuration.resolver))
        let reporter = try PinReporter(
            folder: configuration.cache.reportFolder, resolver: resolver,
            settings: policy.reporting,
            use: PinReporter.UseWatch(
                path: configuration.cache.pinUseFile, counts: { published.pinUse() }),
            onEvent: { [logger] in logger.log($0) })
        let engine = SharedEnvironment(
            mailboxes: try mailboxes.map { _ in try Mailbox<EngineMessage>() },
            resolver: resolver, store: makeStore(), logger: logger, labels: labels,
            activity: activity, pinFailures: reporter, passwords: passwords,
            transformationWork: contents.work)
        return SharedServices(
            mailboxes: mailboxes, engine: engine, pinReporter: reporter,
            accessLog: try makeAccessLog(),
            notifyActivity: { first.post(.activityChanged) },
            administration: { site.respond(to: $0) })
    }

    private func makeStore() -> CacheStore? {
        guard configuration.cache.isEnabled else { return nil }
        var options = CacheStoreOptions()
        options.memoryBytes = configuration.cache.memoryBytes
        options.diskBytes = Int64(configuration.cache.diskBytes)
        options.diskEntries = configuration.cache.diskEntries
        options.variantsPerKey = configuration.cache.variantsPerURL
        options.folder = configuration.cache.path
        // Below this size a copy into the socket costs less than sending a memory file page by
        // page.
        options.memoryFileBytes = 256 << 10
        // The write-ahead log stays small next to a small database.
        options.checkpointBytes = min(
            options.checkpointBytes, max(1 << 20, configuration.cache.diskBytes / 8))
        let store = CacheStore(options: options) { [logger] event in
            logger.log(event)
        }
        // Only briefly: what is not open by then is treated as missing, and found later.
        _ = store.waitUntilDiskSettled(milliseconds: 100)
        return store
    }

    private func makeAccessLog() throws -> AccessLog? {
        guard let access = configuration.log.access else { return nil }
        return try AccessLog(
            path: access.path, format: access.format == .json ? .json : .combined,
            workers: workerCount, labels: accessLogLabels
        ) { [logger] event in
            logger.warning("access log", metadata: ["event": "\(event)"])
        }
    }

    private var accessLogLabels: AccessLogLabels {
        AccessLogLabels(
            listeners: labels.listenerSnapshot, hosts: labels.snapshot,
            reasons: Reason.tokens)
    }

    private func startWorkers(
        _ policy: PolicySnapshot, _ perWorker: [[ListenerSocket]], _ shared: SharedServices
    ) throws {
        let dimensions = MetricsDimensions(reasons: Reason.tokens.count)
        var metrics: [WorkerMetrics] = []
        for _ in 0..<workerCount {
            metrics.append(WorkerMetrics(dimensions: dimensions))
        }
        published.start(shared, metrics)
        for (index, sockets) in perWorker.enumerated() {
            let (mailbox, counters) = (mailboxes[index], metrics[index])
            try running.start(name: "worker-\(index)") { [logger] in
                do {
                    let worker = try Worker(
                        index: index, policy: policy, shared: shared, metrics: counters,
                        mailbox: mailbox)
                    try worker.run(sockets)
                } catch {
                    // Otherwise its share of the connections would wait in its sockets forever.
                    for socket in sockets where socket.descriptor >= 0 {
                        Descriptors.close(socket.descriptor)
                    }
                    logger.critical("a worker failed", metadata: ["error": "\(error)"])
                }
            }
        }
    }

    private func publish(_ configuration: ConfigurationSnapshot, _ policy: PolicySnapshot) {
        let labels = Set(configuration.hosts.entries.map(\.label))
        reachability = reachability.filter { labels.contains($0.key) }
        // Entries with the same label share what is known about their servers.
        var exactNames: [String: Set<String>] = [:]
        for entry in configuration.hosts.entries {
            exactNames[entry.label, default: []].formUnion(entry.exactNames)
        }
        for (label, names) in exactNames { reachability[label]?.keepOnly(names) }
        let hosts = reachability.values.sorted { $0.label < $1.label }
        published.reload.withLock { reload in
            reload.generation = policy.generation
            reload.loadedMilliseconds = UInt64(max(0, Clock.wallMilliseconds()))
            reload.memoryLimit = UInt64(configuration.cache.memoryBytes)
            reload.diskLimit = UInt64(configuration.cache.diskBytes)
            reload.hosts = hosts
            reload.ownCertificates = OwnCertificate.all(of: configuration)
            reload.pinsets = configuration.pinsets.map { PinsetMetrics($0.pinset) }
            reload.limits = (configuration.limits.upstreamPerHost, configuration.limits.pending)
        }
    }

    // MARK: Running

    /// Serves until the workers have ended.
    private func control() {
        var memory = FreedMemory()
        var waited = 0
        while true {
            service.workersFollow(generation: shared?.generationInForce ?? 0)
            let pause =
                reading != nil || service.isReloading
                ? FileReading.intervalMilliseconds
                : watched.isEmpty
                    ? FreedMemory.intervalMilliseconds : WatchedFiles.intervalMilliseconds
            switch signals.wait(milliseconds: pause) {
            case .reload: reload()
            case .reopenLogs: shared?.accessLog?.reopen()
            case .terminate, .interrupt: return drain()
            case .none:
                checkFiles()
                waited += pause
                guard waited >= FreedMemory.intervalMilliseconds else { continue }
                waited = 0
                memory.check(shared?.store)
            }
        }
    }

    /// How often the main thread checks whether the workers are done.
    private static let pollMilliseconds: Int32 = 20
    /// How long the workers may take to end after their last exchange, and after a second signal,
    /// which they see in their next turn. Neither is waited for longer: otherwise one that hangs
    /// would keep the process from ever ending.
    private static let stopMilliseconds: Int64 = 5000
    private static let stopAtOnceMilliseconds: Int64 = 1000
    /// The most that the process needs after its workers were told to end.
    private static let endMilliseconds = stopMilliseconds + 10_000
    /// The time limit for the log and the reports after a second signal.
    private static let closeAtOnceMilliseconds: Int64 = 100

    private func drain() {
        let delay = configuration.timeouts.drainDelayMilliseconds
        let grace = configuration.timeouts.graceMilliseconds
        logger.info("draining", metadata: ["delay": "\(delay)ms", "grace": "\(grace)ms"])
        service.stopping(withinMilliseconds: delay + grace + Self.endMilliseconds)
        // Load balancers poll /readyz now and then: until they have, connections are still
        // accepted.
        shared?.isDraining.store(true, ordering: .relaxed)
        if wait(atMost: delay, for: { "not ready, and still accepting" }, until: hasEnded) {
            stopAtOnce()
        }
        for mailbox in mailboxes { mailbox.post(.drain) }
        if wait(atMost: grace, for: { underWay }, until: { hasEnded() || hasDrained }) {
            stopAtOnce()
        }
        for mailbox in mailboxes { mailbox.post(.stop) }
        service.workersEnd(shared)
        let interrupted = wait(atMost: Self.stopMilliseconds, until: hasEnded)
        guard !interrupted, hasEnded() else { stopAtOnce() }
        running.join()
    }

    private func hasEnded() -> Bool { running.count == 0 }

    /// Waits for a condition, on the clock for deadlines; `true` if a signal requests a stop
    /// meanwhile.
    ///
    /// - Parameter what: what is waited for, for the service manager.
    private func wait(
        atMost milliseconds: Int64, for what: () -> String? = { nil }, until condition: () -> Bool
    ) -> Bool {
        var clock = LoopClock(monotonic: Clock.monotonicMilliseconds())
        let end = clock.now + milliseconds
        while !condition(), clock.now < end {
            if service.isHeard, let what = what() {
                service.draining(what, remaining: end - clock.now)
            }
            switch signals.wait(milliseconds: Int(Self.pollMilliseconds)) {
            case .terminate, .interrupt: return true
            case .reload, .reopenLogs, .none: break
            }
            clock.advance(to: Clock.monotonicMilliseconds(), waited: Self.pollMilliseconds)
        }
        return false
    }

    /// Ends the process whatever the workers and the disk are doing. The cache's database is
    /// consistent at any time; pending writes are lost.
    ///
    /// - Parameter hasFailed: whether the gateway ends because it cannot work.
    private func stopAtOnce(hasFailed: Bool = false) -> Never {
        logger.warning("stopping immediately")
        service.workersEnd(shared)
        for mailbox in mailboxes { mailbox.post(.stop) }
        let end = Clock.monotonicMilliseconds() + Self.stopAtOnceMilliseconds
        while running.count > 0, Clock.monotonicMilliseconds() < end { usleep(1000) }
        let hung = running.count
        if hung > 0 {
            logger.critical("workers did not stop in time", metadata: ["workers": "\(hung)"])
        } else {
            running.join()
        }
        shared?.accessLog?.close(withinMilliseconds: Int(Self.closeAtOnceMilliseconds))
        shared?.pinReporter?.close(withinMilliseconds: Self.closeAtOnceMilliseconds)
        operationalLog.close(withinMilliseconds: Self.closeAtOnceMilliseconds)
        _exit(hung == 0 && !hasFailed ? 0 : 1)
    }

    private var hasDrained: Bool { shared?.haveAllDrained ?? false }

    private func reload() {
        service.reloading()
        do {
            let loaded = try load(configuration.access.lists)
            let (generation, perWorker) = try adopt(loaded.snapshot) {
                log(loaded.warnings)
                published.reload.withLock { $0.lastSucceeded = true }
            }
            watch(loaded.snapshot)
            announce(perWorker)
            service.reloaded(
                generation: generation, listeners: loaded.snapshot.listeners.count)
            logger.notice("configuration reloaded", metadata: ["generation": "\(generation)"])
        } catch {
            published.reload.withLock { $0.lastSucceeded = false }
            service.notReloaded()
            logger.error(
                "configuration not reloaded; the previous one remains in effect",
                metadata: ["error": "\(error)"])
        }
    }

    /// Puts another configuration in force.
    ///
    /// - Parameter prepare: called before that, when nothing can fail any more.
    /// - Returns: its generation, and the sockets that were opened for it.
    func adopt(
        _ next: ConfigurationSnapshot, preparing prepare: () -> Void = {}
    ) throws -> (generation: UInt64, sockets: [[ListenerSocket]]) {
        let generation = published.reload.withLock { $0.generation } + 1
        let policy = try makePolicy(next, generation: generation)
        let perWorker = try sockets.open(next)
        labels.activate(next)
        prepare()
        if let shared { publishListeners(perWorker, to: shared) }
        warnOfWhatNeedsRestart(next)
        warnOfWhatIsRemoved(next)
        configuration = next
        self.policy = policy
        operationalLog.logLevel = Logger.Level(next.log.level)
        if let access = next.log.access {
            shared?.accessLog?.reconfigure(
                path: access.path, format: access.format == .json ? .json : .combined,
                labels: accessLogLabels)
        } else {
            // The log itself stays unchanged until a restart.
            shared?.accessLog?.rename(accessLogLabels)
        }
        publish(next, policy)
        shared?.pinReporter?.configure(policy.reporting)
        for (mailbox, sockets) in zip(mailboxes, perWorker) {
            mailbox.post(.configure(policy, sockets))
        }
        return (generation, perWorker)
    }
}
