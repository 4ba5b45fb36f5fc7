import CachePolicy
import CacheStore
import Clocks
import EventLoop
import Locking
import PasswordChecks
import PinObserving
import PinReporting
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import PinfoldTLS
import Synchronization
import Trust

/// The state that the process publishes: every value is read from its owner at the time of a
/// scrape.
final class PublishedState: Sendable {
    struct Reload {
        var generation: UInt64 = 1
        /// The configuration in force; `nil` before the start.
        var configuration: ConfigurationSnapshot?
        /// The latest reload; `nil` if there was none.
        var last: StatusReport.Reload?
        /// The latest one that was refused; `nil` if none was.
        var lastRefused: StatusReport.Reload?
        var lastSucceeded: Bool { last?.errors.isEmpty ?? true }
        /// About the configuration in force.
        var warnings: [ConfigurationFinding] = []
        /// What was read when the process started, and not again; its defaults in place of the
        /// rest.
        var begunWith: ConfigurationSnapshot?
        /// Its sections that are not in force before a restart.
        var needRestart: [String] = []
        var listeners: [PublishedListener] = []
        /// The number of host entries.
        var entries = 0
        /// The names of the pinsets of each host entry, by its label.
        var entryPinsets: [String: [String]] = [:]
        var cachePath = ""
        /// `nil` unless the gateway is shutting down.
        var draining: StatusReport.Draining?
        /// Whether no watched file is unusable.
        var filesAreUsable = true
        var files: [(path: String, outcome: WatchedFiles.Outcome)] = []
        var fileRefusals: UInt64 = 0
        var loadedMilliseconds: UInt64 = 0
        var memoryLimit: UInt64 = 0
        var diskLimit: UInt64 = 0
        var hosts: [EntryReachability] = []
        /// The servers of reverse listeners that have several.
        var serverSets: [ServerSet] = []
        var pinsets: [PinsetMetrics] = []
        var ownCertificates: [OwnCertificate] = []
        var lists = DatedLists()
        var limits = LimitsConfiguration()
    }

    let reload = Locked(Reload())
    /// The issuer of certificates for intercepted tunnels, or `nil` if there is none.
    let issuer = Locked<CertificateIssuer?>(nil)
    /// Checks passwords; `nil` before the start.
    let passwords = Locked<PasswordChecker?>(nil)
    /// The last counters of the process that this one has succeeded; `nil` without one.
    let former = Locked<FormerCounters?>(nil)
    /// What the configuration in force has become; `nil` before the start.
    let policy = Locked<PolicySnapshot?>(nil)
    /// What operators can do with the cache; `nil` without one.
    let cache = Locked<CacheAdministration?>(nil)
    /// The gateways that share the cache; `nil` if it is not shared.
    let fleet = Locked<FleetAdministration?>(nil)
    /// Looks at all of this for whoever wants to see it; `nil` before the start.
    let observer = Locked<GatewayObserver?>(nil)
    private let services = Locked<(shared: SharedServices, workers: [WorkerMetrics])?>(nil)
    private let startedProcess = ProcessReader()
    let version: String
    let revision: String
    /// The configuration file; `nil` if there is none.
    let file: String?
    private let log: OperationalLog
    private let policies: PolicyHolder

    init(
        version: String, revision: String, file: String?, log: OperationalLog,
        policies: PolicyHolder = PolicyHolder()
    ) {
        (self.version, self.revision, self.file) = (version, revision, file)
        self.log = log
        self.policies = policies
    }

    /// The policy from elsewhere; `nil` if none is configured.
    var policyReport: PolicyReport? {
        PolicyReport(policies.standing, now: Clock.wallMilliseconds())
    }

    /// The process's figures.
    var process: ProcessFigures { startedProcess.figures() }

    /// The services, and each worker's metrics; nothing before the start.
    var running: (shared: SharedServices?, workers: [WorkerMetrics]) {
        let services = services.withLock { $0 }
        return (services?.shared, services?.workers ?? [])
    }

    func start(_ shared: SharedServices, _ workers: [WorkerMetrics]) {
        services.withLock { $0 = (shared, workers) }
    }

    /// Releases the services, which retain this through the administrative pages: anything left
    /// when the process ends is then a leak.
    func end() {
        _ = services.withLock { $0.take() }
        _ = policy.withLock { $0.take() }
        _ = cache.withLock { $0.take() }
        _ = fleet.withLock { $0.take() }
        _ = passwords.withLock { $0.take() }
    }

    /// Each worker's counters; empty before the start.
    var workerMetrics: [WorkerMetrics] { services.withLock { $0 }?.workers ?? [] }

    func readiness() -> ServiceReadiness {
        guard let services = services.withLock({ $0 }) else {
            return ServiceReadiness(listenersUp: 0, listenersConfigured: 1, isDraining: false)
        }
        let readiness = ServiceReadiness(
            listenersUp: 1, listenersConfigured: 1,
            isDraining: services.shared.isDraining.load(ordering: .relaxed))
        let standing = policies.standing
        if readiness == .ready, standing.isMissing(at: Clock.wallMilliseconds()) {
            return .withoutPolicy(hasExpired: standing.inForce != nil)
        }
        guard readiness == .ready, let store = services.shared.store,
            case .off(let reason) = store.statistics().diskState, reason != .disabled
        else { return readiness }
        return .readyWithoutDisk(reason.rawValue)
    }

    func metrics() -> MetricsSnapshot {
        let services = services.withLock { $0 }
        let reload = reload.withLock { $0 }
        var snapshot = MetricsSnapshot(
            workers: services?.workers ?? [],
            listeners: services?.shared.labels.listenerSnapshot ?? LabelTable(),
            hosts: services?.shared.labels.snapshot ?? LabelTable(),
            pinsets: services?.shared.labels.pinsetSnapshot ?? LabelTable(),
            reasons: Reason.tokens, notStored: NotStoredReason.allCases.map { "\($0.token)" },
            service: serviceMetrics(services?.shared, reload))
        snapshot.former = former.withLock { $0 }
        return snapshot
    }

    /// What pinsets have matched since the start, by their names.
    func pinUse() -> [String: PinUseTable.Count] {
        guard let services = services.withLock({ $0 }) else { return [:] }
        var counts: [String: PinUseTable.Count] = [:]
        for (index, name) in services.shared.labels.pinsetSnapshot.inForce {
            var count = PinUseTable.Count(
                matches: services.shared.labels.pinMatches(pinset: name))
            for worker in services.workers {
                for result in PinResult.allCases {
                    count.evaluations &+= worker.pinEvaluations(pinset: index, result: result)
                }
            }
            counts[name] = count
        }
        return counts
    }

    private func limitUse(_ shared: SharedServices?) -> ServiceMetrics.LimitUse {
        var use = ServiceMetrics.LimitUse()
        guard let shared else { return use }
        use.client = shared.clients.greatestUse
        use.origin = shared.engine.greatestOriginUse
        use.passwordChecks = passwords.withLock { $0 }?.pending ?? 0
        use.resolver = shared.resolver.statistics()
        return use
    }

    private func serviceMetrics(_ shared: SharedServices?, _ reload: Reload) -> ServiceMetrics {
        var service = ServiceMetrics()
        service.wallSeconds = Clock.wallMilliseconds() / 1000
        service.pinsets = reload.pinsets.map { pinset in
            var pinset = pinset
            pinset.count(shared?.labels.pinMatches(pinset: pinset.label) ?? [:])
            return pinset
        }
        service.certificates = reload.ownCertificates.map {
            CertificateMetrics(use: $0.use.rawValue, file: $0.file, notAfter: $0.notAfter)
        }
        service.revocationLists = reload.lists.revocation
        service.logLists = reload.lists.logs
        service.addCache(
            shared?.store?.statistics(), limits: (reload.memoryLimit, reload.diskLimit))
        let cache = cache.withLock { $0 }
        service.addPurges(cache?.purges.counts, shared?.store?.statistics().purges)
        service.addSharedCache(cache?.level?.figures())
        service.addAccessRules(shared?.labels.countedRules ?? [])
        service.addParents(shared?.labels.countedParents ?? [])
        service.addGroups(shared?.labels.countedGroups ?? [])
        service.addLogs(shared?.accessLog?.lines ?? AccessLogLines(), log.lines)
        service.addInterception(issuer.withLock { $0 }?.statistics() ?? IssuerStatistics())
        service.addPinReports(shared?.pinReporter?.statistics)
        service.addPinObservations(shared?.pinObserver?.statistics ?? ObservationStatistics())
        service.addSpans(shared?.spans?.statistics ?? SpanStatistics())
        service.addPolicy(policies.standing, now: Clock.wallMilliseconds())
        service.addFleet(fleet.withLock { $0 }?.lastView)
        service.addLimits(
            reload.limits, passwordChecks: PasswordChecker.limit, limitUse(shared))
        service.addWorkers(shared?.turnTimes ?? [])
        if let activity = shared?.activity { service.addActivity(activity.snapshot) }
        service.addReachability(reload.hosts)
        service.addServers(
            reload.serverSets, limit: reload.limits.upstreamPerHost,
            now: Clock.monotonicMilliseconds())
        service.addConfiguration(
            reload, generation: shared?.generationInForce ?? reload.generation,
            isReady: readiness().isReady)
        service.addBuild(
            version: version, revision: revision, swiftVersion: SwiftCompiler.version)
        service.addProcess(process)
        return service
    }
}

extension PinsetMetrics {
    /// The configuration's part.
    init(_ pinset: Pinset) {
        var pins: [PinMetrics] = []
        if pinset.mode != .none {
            for text in pinset.distinguishedPins where !pins.contains(where: { $0.text == text }) {
                pins.append(PinMetrics(text: text, matches: 0))
            }
            if pinset.pins.count > PinMatches.distinguishedPins {
                pins.append(PinMetrics(text: nil, matches: 0))
            }
        }
        self.init(
            label: pinset.name, pins: pins,
            isEnforced: pinset.isEnforced, expires: pinset.expires,
            isReportedAfter: pinset.afterExpiry == .report)
    }

    /// Adds the counts, by the pins' texts (`RouteLabels`).
    mutating func count(_ matches: [String: UInt64]) {
        for index in pins.indices { pins[index].matches = matches[pins[index].text ?? ""] ?? 0 }
    }
}
