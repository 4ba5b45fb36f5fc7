/// The writer's side of the index: opening, evicting, turning off.
extension DiskIndex {
    /// The contents of the database, as read when it was opened.
    struct Contents {
        var seed: UInt64
        var table: IndexTable
        /// Entry id to body id, where they differ.
        var bodies = SplitMap<Int64>()
        /// The largest id that any row may have.
        var lastID: Int64
        /// Bodies that another process reads, which must not be removed.
        var borrowed: [Int64] = []
        /// Those of them, and of the bodies read here, that no entry has any more.
        var doomed: [Int64] = []
    }

    /// Installs the opened database's entries and admits stores and loads. Returns the rows that
    /// must be removed because their keys changed in the meantime; `nil` if all of them must.
    func begin(_ contents: consuming Contents) -> [Removal]? {
        var contents = consume contents
        return state.withLock { state in
            state.seed = contents.seed
            state.nextID = max(state.nextID, contents.lastID + 1)
            // Not copied: a second reference would have it copied when it changes. What was there
            // is freed outside the lock.
            swap(&state.table, &contents.table)
            swap(&state.bodies, &contents.bodies)
            state.phase = .ready
            state.handedBodies = nil
            for body in contents.borrowed { state.pins[body, default: Pin()].count += 1 }
            for body in contents.doomed { state.pins[body]?.isDoomed = true }
            let journal = state.journal
            state.journal = IndexJournal()
            guard !journal.isOverflowed else {
                contents.table = state.table
                state.table = IndexTable()
                state.bodies = SplitMap()
                return nil
            }
            return journal.changes.flatMap { state.forget($0) }
        }
    }

    /// Drops everything and admits nothing.
    func turnOff(_ reason: DiskOffReason) {
        // What is dropped is freed outside the lock.
        let dropped = state.withLock { state -> (IndexTable, SplitMap<CachedResponse>) in
            let dropped = (state.table, state.waiting)
            state.phase = .off(reason)
            state.table = IndexTable()
            state.waiting = SplitMap()
            state.streamed = []
            state.bodies = SplitMap()
            state.pins = [:]
            state.accesses = []
            state.hits = [:]
            state.handedBodies = nil
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// Admits nothing new; what is queued stays known, so that it can be written.
    func stopAdmitting() {
        state.withLock { state in
            if case .off = state.phase { return }
            state.phase = .off(.closed)
        }
    }

    /// Marks whatever is in a database that is opened from now on as outdated.
    func forgetAll() { state.withLock { $0.journal.noteAll() } }

    /// Removes every entry.
    /// - Parameter queue: queues the removal of all rows, up to the largest id assigned so far.
    ///   Called under the lock, if ready: rows that are admitted afterwards are queued behind it.
    /// - Returns: what `queue` does; `nil` if not ready.
    func purge(_ queue: (Int64) -> Bool) -> Bool? {
        let (result, dropped) = state.withLock {
            state -> (Bool?, (IndexTable, SplitMap<CachedResponse>)?) in
            if state.phase != .ready { state.journal.noteAll() }
            guard state.isReadable else { return (nil, nil) }
            // Nobody has a copy of a table that is still in use: it could not be changed.
            let dropped = (state.table, state.waiting)
            state.table = IndexTable()
            state.waiting = SplitMap()
            state.streamed = []
            state.bodies = SplitMap()
            state.accesses = []
            state.hits = [:]
            return (state.phase == .ready ? queue(state.nextID - 1) : nil, dropped)
        }
        withExtendedLifetime(dropped) {}
        return result
    }

    /// Whether anybody is reading chunks of a body in this range of ids.
    func isPinned(_ bodies: ClosedRange<Int64>) -> Bool {
        state.withLock { $0.pins.keys.contains { bodies.contains($0) } }
    }

    /// The contents of a queued entry's narrow row; `nil` if it is no longer wanted.
    func row(_ token: IndexToken) -> IndexSlot? {
        state.withLock { $0.table.isLive(token) ? $0.table[token.slot] : nil }
    }

    /// Marks the entries' rows as committed, so that readers may look for them. A few at a time, so
    /// that a worker that wants the lock does not wait long, and what is freed is freed outside it.
    func committed(_ tokens: [IndexToken]) {
        var rest = tokens[...]
        while !rest.isEmpty {
            let some = rest.prefix(16)
            rest = rest.dropFirst(16)
            let written = state.withLock { state in
                var written: [CachedResponse] = []
                for token in some where state.table.isLive(token) {
                    let flags = state.table[token.slot].flags
                    state.table.setFlags(token.slot, flags.union(.committed))
                    if !state.streamed.isEmpty { state.streamed.remove(token.id) }
                    if let response = state.waiting.removeValue(token.id) {
                        written.append(response)
                    }
                }
                return written
            }
            withExtendedLifetime(written) {}
        }
    }

    /// Removes the committed entry that is the least likely to be used; `nil` if there is none.
    ///
    /// - Parameter counter: the limit that was exceeded.
    func evict(_ counter: WritableKeyPath<DiskEvictions, UInt64>) -> Removal? {
        state.withLock { state in
            let slot = state.table.victim()
            guard slot >= 0 else { return nil }
            state.evictions[keyPath: counter] += 1
            return state.remove(slot)
        }
    }

    /// Last uses to be written, at most `limit`.
    func takeAccesses(limit: Int) -> [(id: Int64, accessed: UInt32, hits: UInt32)] {
        state.withLock { state in
            let taken = state.accesses.suffix(limit)
            state.accesses.removeLast(taken.count)
            return taken.compactMap { token in
                guard state.table.isLive(token) else { return nil }
                let entry = state.table[token.slot]
                state.table.setFlags(token.slot, entry.flags.subtracting(.accessedChanged))
                guard entry.flags.contains(.committed) else { return nil }
                let hits = state.hits.removeValue(forKey: token.id) ?? 0
                return (token.id, entry.accessed, hits)
            }
        }
    }

    /// Entries, their bytes, and evictions so far.
    func statistics() -> (phase: DiskState, entries: Int, bytes: Int64, evictions: DiskEvictions) {
        state.withLock { ($0.phase, $0.table.count, $0.table.bytes, $0.evictions) }
    }
}

extension DiskIndex.State {
    mutating func forget(_ change: IndexJournal.Change) -> [Removal] {
        let keyHash = change.key.withUnsafeBytes { XXHash64.hash($0, seed: seed) }
        guard let vary = change.vary else { return remove(keyHash: keyHash) }
        return remove(keyHash: keyHash, varyHash: DiskIndex.varyHash(vary, seed: seed))
    }
}
