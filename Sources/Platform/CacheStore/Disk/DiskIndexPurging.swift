import CachePolicy

/// What purges and lists need of the index.
extension DiskIndex {
    /// Removes the entry of a row; `nil` if it is no longer there.
    func remove(id: Int64, key: UnsafeRawBufferPointer) -> Removal? {
        state.withLock { state in
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0 {
                if state.table[slot].id == id { return state.remove(slot) }
                slot = state.table.next(slot)
            }
            return nil
        }
    }

    /// Seed of the hashes of keys, hosts and tags.
    var seed: UInt64 { state.withLock { $0.seed } }

    /// Notes how often an entry was used, to be written with the time of its last use.
    func count(_ token: IndexToken, hits: UInt32) {
        guard token != .none, hits > 0 else { return }
        state.withLock { $0.count(token, hits: hits) }
    }

    /// Whether a soft purge has made an entry stale.
    func isStale(_ token: IndexToken) -> Bool {
        state.withLock { $0.table.isLive(token) && $0.table[token.slot].isStale }
    }

    /// A soft purge has made an entry stale.
    func setStale(_ token: IndexToken) {
        state.withLock { state in
            if state.table.isLive(token) { state.table.setStale(token.slot) }
        }
    }

    /// The same for the entry of a row. Returns whether it is there.
    func setStale(id: Int64, key: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0 {
                if state.table[slot].id == id {
                    state.table.setStale(slot)
                    return true
                }
                slot = state.table.next(slot)
            }
            return false
        }
    }

    /// Whether a response is the one that an entry is of, and not one from before a soft purge.
    func holds(_ response: CachedResponse) -> Bool {
        let token = response.token
        return state.withLock { state in
            state.table.isLive(token)
                && (response.staleSince > 0 || !state.table[token.slot].isStale)
        }
    }

    /// The first row that is queued; `nil` if there is none.
    var firstWaiting: Int64? { state.withLock { $0.firstWaiting } }

    /// Ids are larger than this from now on.
    func skip(through id: Int64) {
        state.withLock { $0.nextID = max($0.nextID, id + 1) }
    }
}

/// How often entries are used.
extension DiskIndex.State {
    var firstWaiting: Int64? {
        let ids = [waiting.firstID, streamed.min()].compactMap { $0 }
        return ids.min()
    }

    /// What cannot be noted, because there is too much already, is not counted.
    mutating func count(_ token: IndexToken, hits count: UInt32) {
        guard table.isLive(token) else { return }
        if let known = hits[token.id] {
            hits[token.id] = known &+ count
        } else if hits.count < DiskIndex.accessLimit {
            hits[token.id] = count
        }
        noteAccess(token.slot)
    }

    mutating func use(_ slot: Int32, now: UInt32, every seconds: UInt32) {
        table.countUse(of: slot)
        count(table.token(slot), hits: 1)
        guard now > table[slot].accessed, now - table[slot].accessed >= seconds else { return }
        table.setAccessed(slot, now)
        noteAccess(slot)
    }

    /// Its row has to be brought up to date.
    private mutating func noteAccess(_ slot: Int32) {
        guard !table[slot].flags.contains(.accessedChanged),
            accesses.count < DiskIndex.accessLimit
        else { return }
        table.setFlags(slot, table[slot].flags.union(.accessedChanged))
        accesses.append(table.token(slot))
    }
}
