import Activity
import CachePolicy
import CacheStore
import Clocks
import EventLoop
import Locking
import PinReporting
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
        var lastSucceeded = true
        /// Whether no watched file is unusable.
        var filesAreUsable = true
        var files: [WatchedFileMetrics] = []
        var fileRefusals: UInt64 = 0
        var loadedMilliseconds: UInt64 = 0
        var memoryLimit: UInt64 = 0
        var diskLimit: UInt64 = 0
        var hosts: [EntryReachability] = []
        var pinsets: [PinsetMetrics] = []
        var ownCertificates: [OwnCertificateMetrics] = []
        var connectionLimit: UInt64?
        var waitingLimit: UInt64?
    }

    let reload = Locked(Reload())
    /// The issuer of certificates for intercepted tunnels, or `nil` if there is none.
    let issuer = Locked<CertificateIssuer?>(nil)
    private let services = Locked<(shared: SharedServices, workers: [WorkerMetrics])?>(nil)
    private let build: BuildInfo
    private let process = ProcessReader()

    var version: String { build.version }

    private let log: OperationalLog

    init(version: String, revision: String, log: OperationalLog) {
        build = BuildInfo(
            version: version, revision: revision, swiftVersion: SwiftCompiler.version)
        self.log = log
    }

    func start(_ shared: SharedServices, _ workers: [WorkerMetrics]) {
        services.withLock { $0 = (shared, workers) }
    }

    /// Releases the services, which retain this through the administrative pages: anything left
    /// when the process ends is then a leak.
    func end() {
        _ = services.withLock { $0.take() }
    }

    func readiness() -> ServiceReadiness {
        guard let services = services.withLock({ $0 }) else {
            return ServiceReadiness(listenersUp: 0, listenersConfigured: 1, isDraining: false)
        }
        let readiness = ServiceReadiness(
            listenersUp: 1, listenersConfigured: 1,
            isDraining: services.shared.isDraining.load(ordering: .relaxed))
        guard readiness == .ready, let store = services.shared.store,
            case .off(let reason) = store.statistics().diskState, reason != .disabled
        else { return readiness }
        return .readyWithoutDisk(reason.rawValue)
    }

    func metrics() -> MetricsSnapshot {
        let services = services.withLock { $0 }
        let reload = reload.withLock { $0 }
        return MetricsSnapshot(
            workers: services?.workers ?? [],
            listeners: services?.shared.labels.listenerSnapshot ?? LabelTable(),
            hosts: services?.shared.labels.snapshot ?? LabelTable(),
            pinsets: services?.shared.labels.pinsetSnapshot ?? LabelTable(),
            reasons: Reason.tokens, notStored: NotStoredReason.allCases.map { "\($0.token)" },
            service: serviceMetrics(services?.shared, reload), process: process.metrics(),
            build: build)
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

    private func serviceMetrics(_ shared: SharedServices?, _ reload: Reload) -> ServiceMetrics {
        var service = ServiceMetrics()
        if let store = shared?.store { Self.describe(store.statistics(), reload, &service) }
        if let log = shared?.accessLog { service.accessLog = log.metrics }
        service.operationalLog = log.metrics
        if let issuer = issuer.withLock({ $0 }) {
            service.interception = InterceptionMetrics(issuer.statistics())
        }
        if let reporter = shared?.pinReporter {
            service.pinReports = PinReportMetrics(reporter.statistics)
        }
        service.wallSeconds = Clock.wallMilliseconds() / 1000
        service.connectionLimit = reload.connectionLimit
        service.waitingLimit = reload.waitingLimit
        if let activity = shared?.activity { service.activity = StateMetric(activity.snapshot) }
        service.pinsets = reload.pinsets.map { pinset in
            var pinset = pinset
            pinset.count(shared?.labels.pinMatches(pinset: pinset.label) ?? [:])
            return pinset
        }
        service.ownCertificates = reload.ownCertificates
        service.reachability = reload.hosts.map { ReachabilityMetrics($0) }
        service.configurationGeneration = shared?.generationInForce ?? reload.generation
        service.lastReloadSucceeded = reload.lastSucceeded && reload.filesAreUsable
        service.watchedFiles = reload.files
        service.fileRefusals = reload.fileRefusals
        service.configurationLoadedMilliseconds = reload.loadedMilliseconds
        service.isReady = readiness().isReady
        return service
    }

    private static func describe(
        _ store: StoreStatistics, _ reload: Reload, _ service: inout ServiceMetrics
    ) {
        service.memoryTier = CacheTierMetrics(
            bytes: UInt64(max(0, store.memoryBytes)), limitBytes: reload.memoryLimit,
            entries: UInt64(max(0, store.memoryEntries)), evictions: store.memoryEvictions)
        service.memoryHeapBytes = UInt64(max(0, store.memoryHeapBytes))
        guard store.diskState != .off(.disabled) else { return }
        service.diskTier = CacheTierMetrics(
            bytes: UInt64(max(0, store.diskBytes)), limitBytes: reload.diskLimit,
            entries: UInt64(max(0, store.diskEntries)), evictions: store.diskEvictions.total)
        service.disk = DiskMetrics(store)
        service.storeQueue = StoreQueueMetrics(
            bytes: UInt64(max(0, store.queueBytes)), operations: UInt64(max(0, store.queueDepth)),
            dropped: store.diskSkipped, damaged: store.damagedEntries)
        switch store.diskState {
        case .opening: service.diskState = .opening
        case .ready: service.diskState = .on
        case .off: service.diskState = .failed
        }
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

extension ReachabilityMetrics {
    /// What is known about an entry's servers.
    init(_ entry: EntryReachability) {
        self.init(
            label: entry.label,
            states: ReachabilityState.allCases.map {
                State(
                    label: $0.label, servers: UInt64(entry.count(in: $0)),
                    transitions: entry.transitions(to: $0))
            })
    }
}

extension PinReportMetrics {
    /// The reporter's statistics.
    init(_ reporter: ReportStatistics) {
        self.init()
        results = ReportResult.allCases.map { ("\($0)", reporter.counts[$0] ?? 0) }
        waiting = reporter.waiting
        waitingBytes = reporter.waitingBytes
    }
}

extension DiskMetrics {
    /// The store's statistics.
    init(_ store: StoreStatistics) {
        self.init()
        databaseBytes = UInt64(max(0, store.diskFileBytes - store.diskLogBytes))
        logBytes = UInt64(max(0, store.diskLogBytes))
        writes = store.diskWrites
        evictedForBytes = store.diskEvictions.bytes
        evictedForEntries = store.diskEvictions.entries
        evictedForVariants = store.diskEvictions.variants
        restarts = store.diskRestarts
    }
}

extension InterceptionMetrics {
    /// The issuer's statistics.
    init(_ issuer: IssuerStatistics) {
        self.init()
        kept = UInt64(max(0, issuer.kept))
        waiting = UInt64(max(0, issuer.waiting))
        issued = UInt64(max(0, issuer.issued))
        hits = UInt64(max(0, issuer.hits))
        coalesced = UInt64(max(0, issuer.coalesced))
        failures = UInt64(max(0, issuer.failures))
    }
}
