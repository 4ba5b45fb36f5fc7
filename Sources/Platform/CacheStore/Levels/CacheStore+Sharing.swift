import CachePolicy

// What other gateways may have fetched.
extension CacheStore {
    /// Whether there is a level that other gateways use as well, and that can be asked.
    public var isShared: Bool { levels.contains { $0.isShared && $0.state == .ready } }

    /// Asks the levels that other gateways use as well for a fresh response in place of a stale
    /// one, as `load` does: if there is none, one gateway of all is to have it confirmed.
    ///
    /// - Returns: `false` if nothing can be asked; `completion` will not be called.
    public func loadFresh(
        insteadOf stale: CachedResponse, policy: PolicyOptions,
        completion: @escaping @Sendable (LoadResult) -> Void
    ) -> Bool {
        var load = LevelLoad(
            key: [UInt8](stale.key), hash: stale.keyHash, variants: nil, policy: policy,
            memory: memory, trust: stale.policy, born: bans.settled, fetches: true,
            completion: completion)
        load.stale = stale
        return load.begin(at: levels.drop { !$0.isShared }, wakes: false)
    }
}
