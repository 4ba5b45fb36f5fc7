import CachePolicy

/// Makes lists of what is stored.
struct EntryLister: Sendable {
    let memory: MemoryTier
    let disk: DiskTier
    let bans: BansInForce
    let trust: TrustNames

    /// Slots of memory that are looked at for one page at most.
    private static let memorySteps = 4096

    func page(
        after cursor: EntryCursor?, limit: Int, _ policy: PolicyOptions
    ) throws(CacheListingError) -> StoredEntryPage {
        try disk.withOneDatabase { hasRows, generation throws(CacheListingError) in
            guard cursor == nil || cursor?.generation == generation else { throw .outdated }
            let limit = max(1, min(limit, CacheStore.largestPage))
            var (place, rows) = (MemoryTier.Place(), Int64(0))
            switch cursor?.position ?? .disk(0) {
            case .disk(let id):
                let page = hasRows ? try pageOfRows(after: id, limit, policy, generation) : nil
                if let page { return page }
                rows = id
            case .memory(let part, let slot, let id):
                (place, rows) = (MemoryTier.Place(part: part, slot: slot), id)
            }
            return pageOfMemory(place, limit, after: rows, generation) { entry in
                // The others were listed as rows: not what was written since.
                entry.token.id > rows || !disk.index.hasRow(entry.token)
            }
        }
    }

    /// `nil` if no rows follow.
    private func pageOfRows(
        after id: Int64, _ limit: Int, _ policy: PolicyOptions, _ generation: UInt64
    ) throws(CacheListingError) -> StoredEntryPage? {
        let rows = try disk.rows(after: id, limit: limit)
        guard let last = rows.last?.id else { return nil }
        let entries = rows.compactMap { row -> StoredEntryInfo? in
            var info = info(row, policy)
            info?.head = nil
            return info
        }
        return StoredEntryPage(
            entries: entries,
            next: EntryCursor(
                rows.count == limit ? .disk(last) : .memory(part: 0, slot: 0, rows: last),
                in: generation))
    }

    /// The same for what is in memory, wherever else it is and whatever becomes of the database.
    func pageOfMemory(
        after cursor: EntryCursor?, limit: Int
    ) throws(CacheListingError) -> StoredEntryPage {
        let process = UInt64(bitPattern: disk.number)
        var place = MemoryTier.Place()
        if let cursor {
            guard case .memory(let part, let slot, 0) = cursor.position,
                cursor.generation == process
            else { throw .outdated }
            place = MemoryTier.Place(part: part, slot: slot)
        }
        let limit = max(1, min(limit, CacheStore.largestPage))
        return pageOfMemory(place, limit, after: 0, process) { _ in true }
    }

    private func pageOfMemory(
        _ start: MemoryTier.Place, _ limit: Int, after rows: Int64, _ generation: UInt64,
        where isListed: (MemoryEntry) -> Bool
    ) -> StoredEntryPage {
        var page: [StoredEntryInfo] = []
        var place: MemoryTier.Place? = start
        var steps = 0
        while let from = place, page.count < limit, steps < Self.memorySteps {
            steps += 1
            place = memory.visitEntries(from: from, atMost: limit - page.count) { entry in
                guard isListed(entry) else { return }
                var info = self.info(entry)
                info.head = nil
                page.append(info)
            }
        }
        let next = place.map { place in
            EntryCursor.Position.memory(part: place.part, slot: place.slot, rows: rows)
        }
        return StoredEntryPage(
            entries: page, next: next.map { EntryCursor($0, in: generation) })
    }

    private func info(_ entry: MemoryEntry) -> StoredEntryInfo {
        var info = StoredEntryInfo(entry.response, hits: entry.hits, tagFields: bans.tagFields)
        info.trust = trust[info.policy]
        info.isOnDisk = disk.index.hasRow(entry.token)
        return info
    }

    func entries(
        of key: CacheKey, _ policy: PolicyOptions
    ) throws(CacheListingError) -> [StoredEntryInfo] {
        try disk.withOneDatabase { _, _ throws(CacheListingError) in
            var found = try disk.rows(of: key).compactMap { info($0, policy) }
                .filter { $0.key == key.bytes }
            let inMemory = key.withView { memory.entries($0) }
            for entry in inMemory where !disk.index.hasRow(entry.token) {
                found.append(info(entry))
            }
            return found
        }
    }

    /// What is known of a row; `nil` if it was purged, or is damaged.
    private func info(_ row: EntryRow, _ policy: PolicyOptions) -> StoredEntryInfo? {
        guard var info = StoredEntryInfo(row, policy: policy, tagFields: bans.tagFields) else {
            return nil
        }
        switch verdict(info, .row(row.id)) {
        case .none: break
        case .gone: return nil
        case .stale(_, let since): info.makeStale(since: since)
        }
        info.trust = trust[info.policy]
        info.hits += UInt64(disk.index.hits(of: row.id))
        let inMemory = CacheKey(bytes: info.key).withView { memory.entries($0) }
        if let same = inMemory.first(where: { $0.token.id == row.id }) {
            info.isInMemory = true
            info.hits += UInt64(same.untold)
        }
        return info
    }

    private func verdict(_ info: StoredEntryInfo, _ age: BanAge) -> BanVerdict {
        info.key.withUnsafeBytes { key in
            (info.head ?? []).withUnsafeBytes { head in bans.verdict(key: key, head: head, age) }
        }
    }

    /// What in memory, and which rows, purges would be about. What is in both counts in both.
    func count(_ purges: [Purge]) throws(CacheListingError) -> PurgeProgress {
        try disk.withOneDatabase { hasRows, _ throws(CacheListingError) in
            var table = BanTable()
            table.tagFields = bans.tagFields
            let mark = BanMark(serial: .max, through: .max, time: 1)
            let patterns = purges.flatMap(\.bannedPatterns)
            for pattern in patterns {
                _ = table.add(Ban(pattern: pattern, isSoft: false, mark: mark))
            }
            var progress = PurgeProgress()
            if hasRows { progress.diskEntries = try countRows(patterns, table) }
            progress.memoryEntries = countInMemory(table)
            progress.isComplete = true
            return progress
        }
    }

    private func countInMemory(_ table: BanTable) -> Int {
        var count = 0
        var place: MemoryTier.Place? = MemoryTier.Place()
        while let from = place {
            place = memory.visitEntries(from: from, atMost: .max) { entry in
                let response = entry.response
                let verdict = table.verdict(key: response.key, head: response.head, .born(0))
                if !verdict.isNone { count += 1 }
            }
        }
        return count
    }

    private func countRows(
        _ patterns: [BanPattern], _ table: BanTable
    ) throws(CacheListingError) -> Int {
        var count = 0
        let candidates = RowCandidates(
            patterns, seed: disk.index.seed, hasFurtherTags: !table.tagFields.isEmpty)
        try disk.visitRecords(where: candidates) { id, key, head in
            guard !table.verdict(key: key, head: head, .row(id)).isNone else { return }
            if case .gone = bans.verdict(key: key, head: head, .row(id)) { return }
            count += 1
        }
        return count
    }
}
