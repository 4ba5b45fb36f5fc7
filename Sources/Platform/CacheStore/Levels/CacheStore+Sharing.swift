import CachePolicy

// What other gateways may have fetched.
extension CacheStore {
    /// Whether there is a level that other gateways use as well, and that can be asked.
    public var isShared: Bool { levels.contains { $0.isShared && $0.state == .ready } }

    /// Whether other gateways may have a fresh response in place of one that is stale: not of what
    /// is never fresh, or of a representation that is stored in parts.
    public func mayHaveFresh(insteadOf stale: CachedResponse) -> Bool {
        let metadata = stale.metadata
        guard stale.staleSince > 0 || metadata.freshUntil > metadata.times.responseTime,
            !metadata.flags.contains(.parts)
        else { return false }
        return isShared
    }

    /// Asks the levels that other gateways use as well for a fresh response in place of a stale
    /// one, as `load` does. What is found replaces that in memory and on disk.
    ///
    /// - Parameter fetches: whether the caller will have it confirmed if there is none, and may
    ///   store that: of several gateways one is to do so, and the others wait for it for a while.
    /// - Returns: `false` if nothing can be asked; `completion` will not be called.
    public func loadFresh(
        insteadOf stale: CachedResponse, policy: PolicyOptions, fetches: Bool = true,
        completion: @escaping @Sendable (LoadResult) -> Void
    ) -> Bool {
        var load = LevelLoad(
            key: [UInt8](stale.key), hash: stale.keyHash, variants: nil, policy: policy,
            memory: memory, trust: stale.policy, born: bans.settled, fetches: fetches,
            completion: completion)
        load.stale = stale
        return load.begin(at: levels.drop { !$0.isShared }, wakes: false)
    }

    /// Whether this very response is still stored: neither replaced nor purged. `false` if that is
    /// not known.
    public func holds(_ response: CachedResponse) -> Bool {
        memory.withShard(response.keyHash) { shard, _ in
            shard.verdict(response, bans).isNone
                && (shard.contains(response) || levels.contains { $0.holds(response) })
        }
    }
}
