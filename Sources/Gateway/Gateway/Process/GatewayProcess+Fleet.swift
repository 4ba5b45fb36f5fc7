import Clocks
import PinfoldConfiguration
import PinfoldEngine
import PinfoldMetrics
import SharedCacheLevel

// What this gateway is in a fleet: what it tells the others, and the policy that comes from them.
extension GatewayProcess {
    /// The gateways that share the cache; `nil` if it is not shared.
    var fleet: FleetAdministration? { published.fleet.withLock { $0 } }

    /// Makes what shows the fleet, and publishes its policy, if there is a fleet.
    func showFleet(in source: inout AdminSource) {
        guard let level = cache?.level else { return }
        let published = published
        let fleet = FleetAdministration(
            name: level.options.gateway, engine: FleetAdministration.Engine(level),
            publishing: PolicyPublishing(
                policies: policies,
                archive: PolicyArchive(folder: configuration.cache.policyFolder),
                lists: { published.reload.withLock { $0.configuration?.access.lists ?? [] } }),
            pinUseFile: configuration.cache.pinUseFile)
        published.fleet.withLock { $0 = fleet }
        source.fleet = fleet
    }

    /// Writes this gateway's report, and reads the others', if it is time.
    func checkFleet() {
        guard let fleet, fleet.isDue(at: Clock.monotonicMilliseconds()) else { return }
        let published = published
        // Beside the metrics, which are made of the same.
        _ = scrapes.run {
            if let report = published.fleetReport(fleet) { fleet.tell(report) }
            fleet.refresh()
        }
    }

    /// Judges the policy that has come by way of the engine, as if it had been fetched, and looks
    /// whether the engine is there.
    func checkOffers() {
        guard let fleet, let settings = configuration.policy, settings.isFromEngine else { return }
        let inForce = policies.standing.inForce
        let isOffered =
            inForce != nil && fleet.offers.judged?.serial == inForce?.serial
            && fleet.offers.judged?.hash == inForce?.hash
        let problem = fleet.engine.isReached() ? nil : "the engine of cache.shared is not reached"
        policies.withStanding {
            $0.looked(problem, isOffered: isOffered, at: Clock.wallMilliseconds())
        }
        guard let offer = fleet.offers.take() else { return }
        judge(offer, settings, fleet)
        // What has become of it is told at once.
        fleet.becomeDue()
    }

    private func judge(
        _ offer: PolicyOffers.Offer, _ settings: PolicyConfiguration, _ fleet: FleetAdministration
    ) {
        let now = Clock.wallMilliseconds()
        let share = FleetShare.least(for: fleet.name)
        // Whoever has none takes what there is: it is not ready otherwise.
        let isMeant = share <= offer.percent || policies.standing.inForce == nil
        var isJudged = true
        switch PolicyDecision.of(
            offer.envelope, after: policies.known, keys: settings.publicKeys, now: now / 1000)
        {
        case .refuse(let refusal): refuse(refusal)
        case .unchanged where policies.document != nil:
            policies.withStanding { $0.confirm(at: now) }
            keepStored()
        case .take, .unchanged, .signedAnew:
            if isMeant {
                take(offer.envelope, from: settings, tag: nil)
            } else {
                isJudged = false
            }
        }
        let envelope = try? PolicyEnvelope(offer.envelope)
        if !isJudged, let envelope {
            logger.log(
                .waits(serial: envelope.serial, percent: offer.percent, share: share))
        }
        let standing = policies.standing
        let refusal = isJudged && standing.isRefused ? standing.lastRefused?.refusal.text : nil
        fleet.offers.note(
            envelope.map {
                FleetReport.Offer(
                    serial: $0.serial, hash: $0.hash, percent: offer.percent, refusal: refusal)
            })
    }
}

extension PublishedState {
    /// What this gateway tells the others of itself; `nil` before the start.
    func fleetReport(_ fleet: FleetAdministration) -> FleetReport? {
        guard let reading = reading(),
            let history = observer.withLock({ $0 })?.history
        else { return nil }
        let reload = reload.withLock { $0 }
        var report = FleetReport()
        report.version = version
        report.started = Int64(clamping: process.startMilliseconds)
        report.time = reading.time
        report.generation = Int64(clamping: reload.generation)
        if let policy = policyReport {
            let inForce = policy.standing.inForce
            report.policy = FleetReport.Policy(
                serial: inForce?.serial, hash: inForce?.hash ?? "",
                expires: inForce.map { $0.expires * 1000 }, offered: fleet.offers.judged,
                alarms: policy.alarms.map(\.alarm.rawValue))
        }
        func count(_ counter: WorkerCounter) -> Int64 {
            Int64(clamping: workerMetrics.reduce(0) { $0 &+ $1.value(counter) })
        }
        report.cache = FleetReport.Cache(
            memoryHits: count(.cacheMemoryHits), diskHits: count(.cacheDiskHits),
            sharedHits: count(.cacheSharedHits),
            lookups: Int64(clamping: reading.totals.lookups))
        report.hosts = FleetReport.Reachability(hosts(history).hosts)
        let table = fleet.pinUse()
        report.hasAllPinsets = table.pinsets.count <= FleetReport.maximumPinsets
        report.pinsets = FleetReport.Pinset.all(table, now: reading.time / 1000)
        return report
    }
}
