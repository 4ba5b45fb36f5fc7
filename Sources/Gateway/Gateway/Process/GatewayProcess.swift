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
import Threads

/// The running gateway: starts everything, handles the process's signals, reloads, and shuts
/// everything down. Belongs to the main thread.
package final class GatewayProcess {
    /// Reads and validates the configuration again. The lists in force are used again where their
    /// files have not changed.
    package typealias Load =
        @Sendable (_ lists: [AccessList]) throws(ConfigurationErrors) -> LoadedConfiguration

    let load: Load
    /// The policy that every reading of the configuration includes.
    let policies = PolicyHolder()
    /// What asks for it; `nil` before the start.
    var fetcher: PolicyFetcher?
    /// What the configuration is made of without it; `nil` if it was not read from a document.
    var local: LocalConfiguration? {
        get { policies.local }
        set { policies.local = newValue }
    }
    /// The alarms about it that have been logged.
    var policyAlarms: Set<PolicyAlarm> = []
    /// Why the stored one could not be used at the start; `nil` if it could, or there was none.
    var storedPolicyProblem: String?
    let reloads = ReloadRequests()
    let upgrades = UpgradeRequests()
    /// How the process was started; `nil` if it cannot be started again.
    let invocation: Invocation?
    /// Who has started this process to take over, until it has ended.
    var predecessor: Predecessor?
    /// Who is being started to take over.
    var successor: Successor?
    var successorVersion = ""
    /// Whether the successor has got the cache's database.
    var hasHandedOverCache = false
    /// Whether the configuration is to be read again if the upgrade under way fails.
    var reloadIsDue = false
    /// The process's exit code.
    var exitCode: Int32 = 0
    let signals = SignalSet()
    let operationalLog: OperationalLog
    let logger: Logger
    var configuration: ConfigurationSnapshot
    var startWarnings: [ConfigurationWarning]
    private let startInputs: ConfigurationInputs
    /// The configuration in force as text, beside what its files say.
    let look: ConfigurationLook
    /// What was derived from `configuration`; `nil` before the start.
    private var policy: PolicySnapshot?
    let published: PublishedState
    let labels = RouteLabels()
    private let sessions = TLSSessionCache()
    let ticketKeys = TLSTicketKeys(now: Clock.bootMilliseconds)
    /// Created with the first configuration that has an authority.
    private var issuer: CertificateIssuer?
    var watched = WatchedFiles()
    /// What the configuration was read from.
    var inputsWatch = ConfigurationWatch()
    /// The changed files that are being read, or `nil` if none are.
    var reading: FileReading?
    /// By the names of host entries.
    var reachability: [String: EntryReachability] = [:]
    /// The key of cookies that bind clients to servers; `nil` until it is needed.
    var stickyKey: StickyKey?
    let sockets: ListenerSockets
    /// The listeners that have been logged and still exist.
    var announced: Set<String> = []
    let workerCount: Int
    /// What is read when the process starts, and not again; its defaults in place of the rest.
    let begunWith: ConfigurationSnapshot
    let running = RunningWorkers()
    var runningWorkers: Int { running.count }
    var service: ServiceReport
    private let contents: ContentServices
    private let passwords: PasswordChecker
    /// Where metrics are written for whoever reads them.
    let scrapes = ThreadPool(name: "metrics", threads: 1, niceness: 5, limit: 64)
    private(set) var mailboxes: [Mailbox<WorkerMessage>] = []
    private(set) var shared: SharedServices?
    /// What operators can do with the cache; `nil` if there is none.
    private(set) var cache: CacheAdministration?

    /// The time limit for writing the rest of the operational log at the end.
    private static let logFlushMilliseconds: Int64 = 1000

    /// - Parameters:
    ///   - loaded: the configuration to run, and the warnings about it.
    ///   - version: the program's version, for the build metric.
    ///   - revision: the commit it was built from, likewise.
    ///   - file: the configuration file; `nil` for the built-in defaults.
    ///   - manager: the service manager that started the process; `nil` if none did.
    ///   - passed: the sockets that the manager passed.
    ///   - invocation: how the process was started, for a successor.
    ///   - predecessor: the gateway to take over from; `nil` if there is none.
    ///   - load: rereads the configuration, at SIGHUP.
    package init(
        loaded: LoadedConfiguration, version: String, revision: String, file: String?,
        manager: ServiceManager? = nil, passed: [PassedSocket] = [],
        invocation: Invocation? = nil, predecessor: Predecessor? = nil, load: @escaping Load
    ) {
        let policies = policies
        let (loaded, problem) = policies.started(loaded)
        storedPolicyProblem = problem
        policies.local = loaded.local
        let loadWhole: Load = { (lists) throws(ConfigurationErrors) in
            try policies.completed(try load(lists))
        }
        let configuration = loaded.snapshot
        policies.adopt(configuration, loaded.document, at: Clock.wallMilliseconds())
        self.configuration = configuration
        startWarnings = loaded.warnings
        startInputs = loaded.inputs
        self.load = loadWhole
        self.invocation = invocation
        self.predecessor = predecessor
        operationalLog = OperationalLog(
            level: Logger.Level(configuration.log.level), format: configuration.log.format,
            hasPriorities: Journal.reads(STDERR_FILENO))
        service = ServiceReport(manager)
        logger = operationalLog.logger(label: "pinfold")
        let path = file.map {
            ConfigurationFiles.absolute(
                $0, in: ConfigurationEnvironment.ofProcess().workingFolder)
        }
        look = ConfigurationLook(loaded, file: path, load: loadWhole)
        published = PublishedState(
            version: version, revision: revision, file: path, log: operationalLog,
            policies: policies)
        workerCount = configuration.workers.count
        let begunWith = ConfigurationSnapshot(
            workers: configuration.workers, listeners: [], cache: configuration.cache,
            resolver: configuration.resolver, activity: configuration.activity)
        self.begunWith = begunWith
        published.reload.withLock { $0.begunWith = begunWith }
        contents = ContentServices(workers: workerCount, logger: logger)
        passwords = PasswordChecker(cores: MachineShare.ofProcess().cores)
        sockets = ListenerSockets(
            workers: workerCount, routes: labels, passed: passed,
            predecessor: predecessor)
    }

    /// Runs until a signal ends the gateway; returns the process's exit code.
    package func run() throws -> Int32 {
        try operationalLog.start()
        defer { operationalLog.close(withinMilliseconds: Self.logFlushMilliseconds) }
        Descriptors.raiseLimit()
        logShare()
        closeUnusedSockets()
        service.starting("opening the listeners")
        let policy = try makeFirstPolicy { try makePolicy($0, generation: 1) }
        self.policy = policy
        // Until this process serves, the file of the administration's socket is the predecessor's.
        sockets.leavesFiles = predecessor != nil
        let perWorker = try sockets.open(configuration)
        defer { sockets.removeFiles() }
        labels.activate(policy)
        for _ in 0..<workerCount { mailboxes.append(try Mailbox<WorkerMessage>()) }
        service.starting("opening the cache")
        let shared = try makeServices(policy, notifying: mailboxes[0])
        self.shared = shared
        publishListeners(perWorker, to: shared)
        publish(configuration, policy, perWorker)
        published.reload.withLock {
            $0.warnings = startWarnings.map { ConfigurationFinding($0) }
        }
        log(startWarnings)
        service.starting("waiting for the workers")
        try startWorkers(policy, perWorker, shared)
        beginFleet()
        guard workersTurn(shared) else { stopAtOnce(hasFailed: true) }
        takeOver()
        announce(perWorker)
        watch(configuration)
        watch(startInputs, isInForce: true)
        try service.startWatchdog(shared, mailboxes, logger)
        service.ready(listeners: configuration.listeners.count)
        let fetcher = try startFetching(policy, shared)
        control()
        // From here on nothing needs the main thread: another signal ends the process immediately.
        signals.restoreDefaults()
        shared.pinObserver?.close(withinMilliseconds: 2000)
        shared.pinReporter?.close(withinMilliseconds: 2000)
        fetcher.close(withinMilliseconds: 2000)
        shared.spans?.close(withinMilliseconds: 2000)
        contents.close()
        passwords.close()
        scrapes.close()
        look.close()
        issuer?.close()
        cache?.purges.close()
        shared.store?.close()
        shared.resolver.close()
        shared.accessLog?.close(withinMilliseconds: 2000)
        published.observer.withLock { $0.take() }?.close()
        published.end()
        service.close()
        logger.info("stopped")
        return exitCode
    }

    // MARK: Starting

    private func makePolicy(
        _ configuration: ConfigurationSnapshot, generation: UInt64
    ) throws -> PolicySnapshot {
        try PolicySnapshot(
            configuration, generation: generation, following: policy, sessions: sessions,
            ticketKeys: ticketKeys, issuer: issuer(for: configuration.interception),
            images: contents.images, schemas: JSONSchema.compile,
            stickyKey: stickyKey(for: configuration), labels: labels
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
        let (published, reloads, upgrades) = (published, reloads, upgrades)
        let resolver = try Resolver(options: ResolverOptions(configuration.resolver))
        let engineMailboxes = try mailboxes.map { _ in try Mailbox<EngineMessage>() }
        let cache = try makeCache(policy, resolver, engineMailboxes)
        self.cache = cache
        published.policy.withLock { $0 = policy }
        published.cache.withLock { $0 = cache }
        var source = AdminSource(
            metrics: { published.metrics() }, readiness: { published.readiness() },
            status: { published.status() }, reload: { reloads.submit($0) },
            upgrade: { upgrades.submit($0) })
        showFleet(in: &source)
        source.tryReload = { [load] in Self.tryReload(published, load) }
        source.cache = cache
        source.work = { [scrapes] in scrapes.run($0) }
        let flows = FlowRing()
        let recordings = observe(flows, labels, for: &source)
        let site = AdminSite(source: source, version: published.version)
        let reporter = try PinReporter(
            folder: configuration.cache.reportFolder, resolver: resolver,
            settings: policy.reporting,
            use: PinReporter.UseWatch(
                path: configuration.cache.pinUseFile, counts: { published.pinUse() }),
            onEvent: { [logger] in logger.log($0) })
        let observer = try makePinObserver(reporter)
        let engine = SharedEnvironment(
            mailboxes: engineMailboxes, resolver: resolver, store: cache?.store, logger: logger,
            labels: labels, activity: activity, pinFailures: reporter, passwords: passwords,
            purges: cache?.purges,
            transformationWork: contents.work, serverChains: ServerChains(),
            serverObserver: observer)
        return SharedServices(
            mailboxes: mailboxes, engine: engine, pinReporter: reporter,
            accessLog: try makeAccessLog(), flows: flows, recordings: recordings,
            spans: try makeSpanExporter(policy, resolver), pinObserver: observer,
            notifyActivity: { first.post(.activityChanged) },
            administration: { site.answer(to: $0) })
    }

    private func startWorkers(
        _ policy: PolicySnapshot, _ perWorker: [[ListenerSocket]], _ shared: SharedServices
    ) throws {
        let dimensions = MetricsDimensions(reasons: Reason.tokens.count)
        var metrics: [WorkerMetrics] = []
        for _ in 0..<workerCount {
            metrics.append(WorkerMetrics(dimensions: dimensions))
        }
        published.passwords.withLock { $0 = passwords }
        published.start(shared, metrics)
        try published.observer.withLock { $0 }?.start()
        for index in 0..<workerCount {
            let (sockets, mailbox, counters) = (perWorker[index], mailboxes[index], metrics[index])
            let isAlone = predecessor == nil && cache?.level == nil
            try running.start(name: "worker-\(index)") { [logger] in
                do {
                    let worker = try Worker(
                        index: index, policy: policy, shared: shared, metrics: counters,
                        mailbox: mailbox)
                    try worker.run(sockets, isAccepting: isAlone)
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

    private func publish(
        _ configuration: ConfigurationSnapshot, _ policy: PolicySnapshot,
        _ perWorker: [[ListenerSocket]]
    ) {
        keepReachability(of: configuration)
        let hosts = reachability.values.sorted { $0.label < $1.label }
        let listeners = perWorker[0].map { socket in
            PublishedListener(
                socket, isSecure: policy.clientTLS(of: socket) != nil,
                sockets: socket.isAdmin ? 1 : workerCount)
        }
        published.reload.withLock { reload in
            reload.generation = policy.generation
            reload.listeners = listeners
            reload.configuration = configuration
            reload.entries = configuration.hosts.entries.count
            reload.entryPinsets = configuration.pinsetNamesByEntry
            // The store stays what it was until a restart.
            if reload.cachePath.isEmpty {
                reload.cachePath = configuration.cache.path
                reload.memoryLimit = UInt64(configuration.cache.memoryBytes)
                reload.diskLimit = UInt64(configuration.cache.diskBytes)
            }
            reload.loadedMilliseconds = UInt64(max(0, Clock.wallMilliseconds()))
            reload.hosts = hosts
            reload.ownCertificates = OwnCertificate.all(of: configuration)
            reload.lists = DatedLists(of: configuration)
            reload.pinsets = configuration.pinsets.map { PinsetMetrics($0.pinset) }
            reload.serverSets = policy.allServerSets
            reload.limits = configuration.limits
        }
    }

    // MARK: Running

    /// Serves until the workers have ended.
    private func control() {
        var memory = FreedMemory()
        var waited = 0
        var filesWaited = 0
        while true {
            service.workersFollow(generation: shared?.generationInForce ?? 0)
            let pause = controlMilliseconds
            switch signals.wait(milliseconds: pause) {
            case .reload: reloadUnlessUpgrading()
            case .reopenLogs: shared?.accessLog?.reopen()
            case .upgrade: upgrade()
            case .terminate, .interrupt:
                abandonUpgrade()
                return drain()
            case .none:
                checkPredecessor()
                if hasSuccessor(), finish() { return }
                checkPolicy()
                checkFleet()
                if inputsWatch.isDue(at: Clock.monotonicMilliseconds()) { reloadUnlessUpgrading() }
                filesWaited += pause
                if reading != nil || filesWaited >= WatchedFiles.intervalMilliseconds {
                    filesWaited = 0
                    checkFiles()
                }
                waited += pause
                guard waited >= FreedMemory.intervalMilliseconds else { continue }
                waited = 0
                memory.check(shared?.store)
            }
        }
    }

    /// Puts another configuration in force.
    ///
    /// - Parameters:
    ///   - inputs: what it was read from; `nil` if only files that it names were read anew.
    ///   - prepare: called before that, when nothing can fail any more.
    /// - Returns: its generation, and the sockets that were opened for it.
    func adopt(
        _ next: ConfigurationSnapshot, from inputs: ConfigurationInputs? = nil,
        preparing prepare: () -> Void = {}
    ) throws -> (generation: UInt64, sockets: [[ListenerSocket]]) {
        let generation = published.reload.withLock { $0.generation } + 1
        let policy = try makePolicy(next, generation: generation)
        let perWorker: [[ListenerSocket]]
        do {
            try shared?.spans?.prepare(for: policy.spanSettings(accessLogLabels))
            if next.observesAnyPins { try shared?.pinObserver?.start() }
            try fetcher?.prepare(for: policy.policyFetching)
            perWorker = try sockets.open(next)
        } catch {
            keepReachability(of: configuration)
            throw error
        }
        labels.activate(policy)
        prepare()
        shared?.spans?.configure(policy.spanSettings(accessLogLabels))
        fetcher?.configure(policy.policyFetching)
        if let shared { publishListeners(perWorker, to: shared) }
        warnOfWhatNeedsRestart(next)
        warnOfWhatIsRemoved(next)
        configuration = next
        if policy.sessionGeneration != self.policy?.sessionGeneration { ticketKeys.forget() }
        self.policy = policy
        published.policy.withLock { $0 = policy }
        cache?.adopt(policy)
        operationalLog.logLevel = Logger.Level(next.log.level)
        operationalLog.format = next.log.format
        if let access = next.log.access {
            shared?.accessLog?.reconfigure(
                path: access.path, format: access.format == .json ? .json : .combined,
                fields: access.fields, labels: accessLogLabels)
        } else {
            // The log itself stays unchanged until a restart.
            shared?.accessLog?.rename(accessLogLabels)
        }
        // First its text: what its files say would otherwise be compared with the one before.
        look.adopt(next, generation: generation, from: inputs)
        publish(next, policy, perWorker)
        shared?.pinReporter?.configure(policy.reporting)
        for (mailbox, sockets) in zip(mailboxes, perWorker) {
            mailbox.post(.configure(policy, sockets))
        }
        return (generation, perWorker)
    }
}
