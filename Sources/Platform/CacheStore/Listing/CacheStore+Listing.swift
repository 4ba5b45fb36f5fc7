import CLinux
import CachePolicy
import Locking
import Threads

// Looking into the cache: on a thread of its own, in pieces, so that nothing else waits for it.
extension CacheStore {
    /// Entries of one page at most.
    public static let largestPage = 1000

    /// Lists stored responses, in an order that does not change.
    /// - Parameters:
    ///   - cursor: where the page before ended; `nil` for the first.
    ///   - limit: entries of the page at most. It may have fewer, or none, although others follow.
    ///   - policy: for the freshness of what is stored.
    ///   - completion: called once, on a thread of the store's, with the page, and where the next
    ///     one begins; `nil` after the last.
    /// - Returns: `false` if too much is being asked; the completion is not called.
    public func entries(
        after cursor: EntryCursor?, limit: Int, policy: PolicyOptions = PolicyOptions(),
        completion: @escaping @Sendable (_ page: [StoredEntryInfo], _ next: EntryCursor?) -> Void
    ) -> Bool {
        clerk.run { [lister] in
            let (page, next) = lister.page(after: cursor, limit: limit, policy)
            completion(page, next)
        }
    }

    /// All stored variants of some keys, with their heads. The same as `entries(after:)`.
    public func entries(
        of keys: [CacheKey], policy: PolicyOptions = PolicyOptions(),
        completion: @escaping @Sendable ([StoredEntryInfo]) -> Void
    ) -> Bool {
        clerk.run { [lister] in completion(keys.flatMap { lister.entries(of: $0, policy) }) }
    }

    /// Counts what purges would be about now, in memory and on disk, and removes nothing.
    public func count(
        _ purges: [Purge], completion: @escaping @Sendable (PurgeProgress) -> Void
    ) -> Bool {
        clerk.run { [lister] in completion(lister.count(purges)) }
    }
}

/// The thread on which the cache is looked into. It is started when somebody asks. What waits for
/// it when the store is closed is not answered.
final class CacheClerk: Sendable {
    private let pool = ThreadPool(name: "cache-clerk", threads: 1, niceness: 10, limit: limit)
    /// The thread at work.
    private let current = Locked<pthread_t?>(nil)
    /// Questions that wait at most.
    private static let limit = 64

    func run(_ work: @escaping @Sendable () -> Void) -> Bool {
        pool.run { [self] in
            current.withLock { $0 = pthread_self() }
            work()
            current.withLock { $0 = nil }
        }
    }

    func close() {
        guard current.withLock({ $0 == pthread_self() }) else { return pool.close() }
        // The last reference to the store was dropped in a completion: it cannot wait for itself.
        let thread = try? Thread(name: "cache-clerk") { [pool] in pool.close() }
        thread?.detach()
    }
}

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
    ) -> ([StoredEntryInfo], EntryCursor?) {
        let limit = max(1, min(limit, CacheStore.largestPage))
        var position = cursor?.position ?? .disk(0)
        var page: [StoredEntryInfo] = []
        if case .disk(let id) = position {
            let rows = disk.rows(after: id, limit: limit)
            for row in rows {
                guard var info = info(row, policy) else { continue }
                info.head = nil
                page.append(info)
            }
            if let last = rows.last, rows.count == limit {
                return (page, EntryCursor(.disk(last.id)))
            }
            position = .memory(part: 0, slot: 0)
            if !page.isEmpty { return (page, EntryCursor(position)) }
        }
        guard case .memory(let part, let slot) = position else { return (page, nil) }
        var place: MemoryTier.Place? = MemoryTier.Place(part: part, slot: slot)
        var steps = 0
        while let from = place, page.count < limit, steps < Self.memorySteps {
            steps += 1
            place = memory.visitEntries(from: from, atMost: limit - page.count) { entry in
                // The others have rows.
                guard !disk.index.hasRow(entry.token) else { return }
                var info = StoredEntryInfo(
                    entry.response, hits: entry.hits, tagFields: bans.tagFields)
                info.trust = trust[info.policy]
                info.head = nil
                page.append(info)
            }
        }
        return (page, place.map { EntryCursor(.memory(part: $0.part, slot: $0.slot)) })
    }

    func entries(of key: CacheKey, _ policy: PolicyOptions) -> [StoredEntryInfo] {
        var found = disk.rows(of: key).compactMap { info($0, policy) }
            .filter { $0.key == key.bytes }
        let inMemory = key.withView { memory.entries($0) }
        for entry in inMemory where !disk.index.hasRow(entry.token) {
            var info = StoredEntryInfo(
                entry.response, hits: entry.hits, tagFields: bans.tagFields)
            info.trust = trust[info.policy]
            found.append(info)
        }
        return found
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
    func count(_ purges: [Purge]) -> PurgeProgress {
        var table = BanTable()
        table.tagFields = bans.tagFields
        let mark = BanMark(serial: .max, through: .max, time: 1)
        let patterns = purges.flatMap(\.bannedPatterns)
        for pattern in patterns {
            _ = table.add(Ban(pattern: pattern, isSoft: false, mark: mark))
        }
        var progress = PurgeProgress()
        var place: MemoryTier.Place? = MemoryTier.Place()
        while let from = place {
            place = memory.visitEntries(from: from, atMost: .max) { entry in
                let response = entry.response
                let verdict = table.verdict(key: response.key, head: response.head, .born(0))
                if !verdict.isNone { progress.memoryEntries += 1 }
            }
        }
        let candidates = RowCandidates(
            patterns, seed: disk.index.seed, hasFurtherTags: !table.tagFields.isEmpty)
        disk.visitRecords(where: candidates) { id, key, head in
            guard !table.verdict(key: key, head: head, .row(id)).isNone else { return }
            if case .gone = bans.verdict(key: key, head: head, .row(id)) { return }
            progress.diskEntries += 1
        }
        progress.isComplete = true
        return progress
    }
}
