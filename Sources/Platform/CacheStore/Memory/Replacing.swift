import CachePolicy
import Clocks

// A stale response, and what other gateways have stored since.
extension MemoryTier {
    /// Makes available what a level below the disk has read for a request that has something stale:
    /// in place of that, in memory and on disk. Memory and disk change together, so that the disk
    /// does not bring the older one back; it is given the newer one when that leaves memory.
    /// - Parameter isCurrent: as for `promote`.
    /// - Returns: what is stored in place of the stale one, which may be another load's copy; `nil`
    ///   if what was read is not to be used instead, or was replaced or removed meanwhile.
    func replace(
        _ stale: CachedResponse, by response: CachedResponse,
        _ isCurrent: (_ isInMemory: Bool) -> Bool
    ) -> CachedResponse? {
        let now = Clock.wallSeconds()
        guard stale.mayBeReplaced(by: response, at: now) else { return nil }
        let fits = admits(response.memoryBytes) && !response.isOnDiskOnly
        let (current, work) = withShard(response.keyHash, adding: response) {
            shard, dropped -> (CachedResponse?, LevelWork) in
            var work = LevelWork()
            guard shard.verdict(response, bans).isNone else { return (nil, work) }
            if bans.isInForce {
                shard.sweep(response.keyHash, response.key, bans, dropped: &dropped)
            }
            let existing = shard.variant(of: response)
            if let existing, !existing.mayBeReplaced(by: response, at: now) {
                // Another request has been here before.
                let isFresh = existing.metadata.isFresh(at: now)
                return (isFresh && existing.policy == response.policy ? existing : nil, work)
            }
            guard isCurrent(fits) else { return (nil, work) }
            // The disk, if it has the stale one, or had it when memory took it over.
            levels.first?.forget(variantOf: response, &work)
            guard fits else {
                shard.removeVariant(of: response, dropped: &dropped)
                return (response, work)
            }
            let hits = existing.map { shard.hits(of: $0) } ?? 0
            shard.insert(response, dropped: &dropped)
            shard.inherit(hits, response)
            return (response, work)
        }
        work.perform()
        return current
    }
}

extension CachedResponse {
    /// Whether another response can be used in place of this one, which is stale.
    fileprivate func mayBeReplaced(by other: CachedResponse, at now: Int64) -> Bool {
        mayBeReplaced(by: other.metadata, other.varyKey, other.policy, at: now)
    }

    /// The same, of what is known of a response: it was obtained under the same policy, is fresh
    /// without being confirmed, and not older but for a second, to which the times of other
    /// gateways are rounded. Another variant is of no interest, unless the server has changed by
    /// what it distinguishes them.
    func mayBeReplaced(
        by other: StoredMetadata, _ vary: VaryKey, _ policy: UInt64, at now: Int64
    ) -> Bool {
        self.policy == policy && (varyKey == vary || varyKey.names != vary.names)
            && other.isFresh(at: now) && !metadata.isFresh(at: now)
            && !other.flags.contains(.noCache)
            && other.times.responseTime >= metadata.times.responseTime - 1
    }
}
