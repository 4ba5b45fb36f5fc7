import CacheStore
import EventLoop
import Logging
import PinfoldConfiguration
import PinfoldEngine
import PinfoldResolver
import SharedCacheLevel

// The cache's store, as the process begins with it.
extension GatewayProcess {
    /// The store with what operators can do with it; `nil` if there is no cache.
    func makeCache(
        _ policy: PolicySnapshot, _ resolver: Resolver, _ mailboxes: [Mailbox<EngineMessage>]
    ) throws -> CacheAdministration? {
        guard configuration.cache.isEnabled else { return nil }
        let level = try configuration.cache.shared.map {
            try makeSharedLevel($0, policy, resolver)
        }
        let store = makeStore(below: level)
        let cache = CacheAdministration(
            store: store,
            purges: try PurgeService(
                store: store, mailboxes: mailboxes, confirm: level.map(Self.confirmation),
                logger: logger),
            level: level, logger: logger)
        cache.adopt(policy)
        return cache
    }

    /// Waits for the other gateways of the fleet.
    private static func confirmation(_ level: SharedLevel) -> PurgeService.Confirm {
        { completion in
            level.confirmPurges {
                completion(
                    PurgeResult.Fleet(
                        isRecorded: $0.isRecorded, confirmed: $0.confirmed,
                        unconfirmed: $0.unconfirmed, away: $0.away))
            }
        }
    }

    private func makeStore(below level: SharedLevel?) -> CacheStore {
        var options = CacheStoreOptions()
        options.memoryBytes = configuration.cache.memoryBytes
        options.diskBytes = Int64(configuration.cache.diskBytes)
        options.diskEntries = configuration.cache.diskEntries
        options.variantsPerKey = configuration.cache.variantsPerURL
        options.folder = configuration.cache.path
        options.inheritedLock = predecessor?.takeCacheLock(of: options.folder)
        // Below this size a copy into the socket costs less than sending a memory file page by
        // page.
        options.memoryFileBytes = 256 << 10
        // The write-ahead log stays small next to a small database.
        options.checkpointBytes = min(
            options.checkpointBytes, max(1 << 20, configuration.cache.diskBytes / 8))
        let store = CacheStore(options: options, below: level.map { [$0] } ?? []) {
            [logger] event in logger.log(event)
        }
        // Only briefly: what is not open by then is treated as missing, and found later. A
        // predecessor serves as long as it takes. The engine is waited for later (`beginFleet`).
        _ = store.waitUntilDiskSettled(
            milliseconds: predecessor == nil ? 100 : Self.cacheMilliseconds)
        return store
    }

    private func makeSharedLevel(
        _ shared: SharedCacheConfiguration, _ policy: PolicySnapshot, _ resolver: Resolver
    ) throws -> SharedLevel {
        let options = try SharedLevelOptions(shared, in: configuration.cache, policy, resolver)
        let place = shared.placeText
        return try SharedLevel(options) { [logger] event in logger.log(event, of: place) }
    }

    /// How long the start waits for what the fleet has purged.
    private static let fleetMilliseconds = 1000

    /// From now on the shared level is used: its purges can be carried out. The workers accept
    /// connections when what was purged while the gateway was away has been carried out, so that
    /// nothing of it is served from disk; but the engine does not hold up the start for long.
    func beginFleet() {
        guard let cache, let level = cache.level else { return }
        let (store, purges) = (cache.store, cache.purges)
        let fleet = fleet
        level.begin(
            FleetDuties(
                purge: { purges.carryOutOfFleet($0, completion: $1) },
                remove: { store.invalidate(keyBytes: $0) },
                removeURI: { [weak cache] in cache?.invalidate(uri: $0) },
                report: { fleet?.report ?? [] },
                policy: { fleet?.offers.put($0, percent: $1) }))
        service.starting("catching up with the fleet")
        if !level.waitUntilFollowing(milliseconds: Self.fleetMilliseconds) {
            logger.warning(
                "serves without knowing what other gateways have purged",
                metadata: ["waited": "\(Self.fleetMilliseconds)ms"])
        }
        // Otherwise they wait for the predecessor.
        if predecessor == nil { for mailbox in mailboxes { mailbox.post(.accept) } }
    }
}
