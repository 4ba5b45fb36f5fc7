import CacheStore
import PinfoldConfiguration

// The cache's store, as the process begins with it.
extension GatewayProcess {
    func makeStore() -> CacheStore? {
        guard configuration.cache.isEnabled else { return nil }
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
        let store = CacheStore(options: options) { [logger] event in
            logger.log(event)
        }
        // Only briefly: what is not open by then is treated as missing, and found later. A
        // predecessor serves as long as it takes.
        _ = store.waitUntilDiskSettled(
            milliseconds: predecessor == nil ? 100 : Self.cacheMilliseconds)
        return store
    }
}
