import CachePolicy
import Locking

/// Looking into memory: nothing that is seen counts as used, and nothing moves.
extension MemoryTier {
    /// How often some of the responses were found since this was last asked. Returns where to
    /// continue; `nil` at the end.
    func takeHits(from place: Place, _ body: (CachedResponse, UInt32) -> Void) -> Place? {
        guard place.part < parts.count else { return nil }
        let next = parts[place.part].withLock {
            $0.takeHits(from: place.slot, count: Self.visitStep, body)
        }
        return Place(part: next == nil ? place.part + 1 : place.part, slot: next ?? 0)
    }

    /// What is kept for a key, as the bans leave it.
    func entries(_ key: CacheKeyView) -> [MemoryEntry] {
        part(key.hash).withLock { shard in
            shard.entries(key.hash, key.bytes).compactMap { shard.allowed($0, bans) }
        }
    }

    /// Calls `body`, without a lock, with some of the responses, as the bans leave them. Returns
    /// where to continue; `nil` at the end.
    func visitEntries(
        from place: Place, atMost limit: Int, _ body: (MemoryEntry) -> Void
    ) -> Place? {
        guard place.part < parts.count else { return nil }
        var found: [MemoryEntry] = []
        let next = parts[place.part].withLock { shard in
            shard.visitEntries(from: place.slot, count: min(limit, Self.visitStep)) { entry in
                if let entry = shard.allowed(entry, bans) { found.append(entry) }
            }
        }
        for entry in found { body(entry) }
        return Place(part: next == nil ? place.part + 1 : place.part, slot: next ?? 0)
    }
}

extension MemoryShard {
    /// What the bans leave of an entry that is kept; `nil` if it was purged.
    fileprivate func allowed(_ entry: MemoryEntry, _ bans: BansInForce) -> MemoryEntry? {
        switch verdict(entry.response, bans) {
        case .none: entry
        case .gone: nil
        case .stale(_, let since):
            entry.response.stale(since: since).map { stale in
                MemoryEntry(
                    response: stale, token: entry.token, hits: entry.hits, untold: entry.untold)
            }
        }
    }
}
