import CachePolicy
import Clocks

// Purging: what an operator removes, or makes stale, whatever it is and however much.
extension CacheStore {
    /// Purges. What was stored, or is being stored or confirmed, by requests that were sent before
    /// this returns is not found by any lookup or load that begins after it has returned, nor after
    /// the process was killed; with a soft purge it is found as stale.
    ///
    /// It takes about as long as the disk takes to write a few bytes, whatever is stored: what is
    /// purged by a pattern is hidden at once and removed later (`purgeProgress`). Not to be called
    /// on a worker's loop.
    ///
    /// - Parameter now: the time, in seconds since 1970: a soft purge makes stale from then on.
    /// - Throws: if it could not be carried out completely; the error says what holds.
    public func purge(_ purge: Purge, now: Int64) throws(PurgeError) -> PurgeReceipt {
        try self.purge([purge], now: now)
    }

    /// The same for several, which are acknowledged together. Their receipt is that of one.
    public func purge(_ purges: [Purge], now: Int64) throws(PurgeError) -> PurgeReceipt {
        try purge(purges, now: now, isOfFleet: false)
    }

    /// The same.
    /// - Parameter isOfFleet: whether another gateway has purged it, and told the levels that are
    ///   shared: only memory and disk are purged.
    package func purge(
        _ purges: [Purge], now: Int64, isOfFleet: Bool
    ) throws(PurgeError) -> PurgeReceipt {
        for purge in purges { try check(purge) }
        return try purging.turns.withLock { _ throws(PurgeError) in
            try carryOut(purges, now: now) {
                if !isOfFleet { for level in levels.dropFirst() { level.purge(purges, now) } }
            }
        }
    }

    /// Removes every variant of a key from memory and disk: another gateway has found that it is
    /// not valid any longer, and told the levels that are shared.
    package func invalidate(keyBytes: [UInt8]) {
        let hash = keyBytes.withUnsafeBytes { CacheKeyView.hash(of: $0) }
        keyBytes.withUnsafeBytes {
            _ = remove(CacheKeyView(bytes: $0, hash: hash), from: levels.prefix(1))
        }
    }

    /// Names further fields whose members, separated by spaces or commas, are tags of a response,
    /// beside Surrogate-Key, Cache-Tag and Cache-Groups. They stay known until the store is closed;
    /// of more than 64 the rest is ignored.
    public func addTagFields(_ names: [String]) {
        let known = ["surrogate-key", "cache-tag", "cache-groups"]
        let further = names.map { $0.lowercased() }.filter { !known.contains($0) }
        guard !further.isEmpty else { return }
        let names = further.map { Array($0.utf8) }
        bans.addTagFields(names)
        for level in levels { level.addTagFields(names) }
    }

    /// How far a purge has been carried out; `nil` if it was long ago, or never.
    ///
    /// After the disk was handed over, this is about memory: the rows are for the process to remove
    /// that has them now, which was told of the purge and would not say here when it has.
    public func purgeProgress(_ id: UInt64) -> PurgeProgress? {
        bans.progress(id, isDiskOurs: !hasHandedOverDisk)
    }

    private func check(_ purge: Purge) throws(PurgeError) {
        let count =
            switch purge.scope {
            case .keys(let keys) where keys.count > Purge.maximumKeys: Int.max
            case .keys, .host, .everything: 0
            case .prefix(let prefix), .uri(let prefix): prefix.count
            case .tag(let tag, let origin): max(tag.count, origin?.count ?? 0)
            }
        guard count <= Purge.maximumPatternBytes else { throw .tooLarge }
    }

    /// - Parameter tell: tells the levels below the disk.
    private func carryOut(
        _ purges: [Purge], now: Int64, _ tell: () -> Void
    ) throws(PurgeError) -> PurgeReceipt {
        let phase = disk.index.phase
        if phase == .off(.closed) { throw .closed }
        let patterns = purges.flatMap(\.patterns)
        // What is told to nobody would be found elsewhere.
        if phase == .handedOver, !patterns.isEmpty, !disk.isFollowed { throw .handedOver }
        var receipt = PurgeReceipt(id: bans.serial)
        var written: [Ban] = []
        if !patterns.isEmpty {
            let mark = ban(patterns, now: now, tell)
            written = patterns.map { Ban(pattern: $0.0, isSoft: $0.isSoft, mark: mark) }
            disk.tell(written)
            receipt = PurgeReceipt(id: mark.serial)
        }
        let keys = purges.flatMap(\.removedKeys)
        if !keys.isEmpty {
            for key in keys { receipt.add(key.withView { remove($0, from: levels[...]) }) }
            if patterns.isEmpty { tell() }
            let banned = BannedKeys(
                keys: purges.flatMap(\.removedURIs), through: disk.index.lastID)
            guard let serial = bans.register(banned) else {
                throw .notDurable(detail: "too many keys wait for the disk")
            }
            written += banned.bans(serial)
            bans.count(serial, memory: receipt.memoryEntries, disk: receipt.diskEntries)
            receipt = PurgeReceipt(
                id: serial, memoryEntries: receipt.memoryEntries, diskEntries: receipt.diskEntries)
        }
        try makeDurable(written, through: receipt.id, phase)
        // Who was told may have ended meanwhile: whoever comes next will find it, but not at once.
        if phase == .handedOver, !patterns.isEmpty, !disk.isFollowed { throw .handedOver }
        if let progress = purgeProgress(receipt.id) {
            receipt.memoryEntries = progress.memoryEntries
            receipt.diskEntries = progress.diskEntries
            receipt.isComplete = progress.isComplete
        }
        return receipt
    }

    /// Puts patterns in force, and begins to carry them out.
    private func ban(
        _ patterns: [(BanPattern, isSoft: Bool)], now: Int64, _ tell: () -> Void
    ) -> BanMark {
        if bans.isCrowded {
            // Rather than purge too much, nothing is stored of requests that are older than all of
            // what has been carried out.
            memory.voidSuspects(through: bans.swept)
            retire()
        }
        let serial = bans.register(patterns, through: disk.index.lastID, now: now) {
            disk.attention.bitwiseOr(DiskTier.purging, ordering: .sequentiallyConsistent)
        }
        memory.note(serial)
        // Before it is settled: what is loaded from them until then knows of no ban as late.
        tell()
        // Rows of responses that were stored until now have at most this id.
        let isKnown =
            disk.index.phase == .ready || disk.index.phase == .handedOver
            || disk.index.phase == .off(.disabled)
        let through = disk.index.lastID
        bans.settle(serial, patterns.map(\.0), through: isKnown ? through : nil)
        if patterns.contains(where: { $0.0 == .everything && !$0.isSoft }) {
            bans.count(
                serial, memory: memory.statistics().entries,
                disk: disk.index.statistics().entries)
            memory.removeAll()
            disk.purge()
        }
        purging.sweep(memory, bans) { [disk, bans, memory] in
            bans.ifMemoryIsSwept {
                disk.attention.bitwiseAnd(~DiskTier.purging, ordering: .sequentiallyConsistent)
            }
            // Without a database nobody else does.
            if disk.index.phase == .off(.disabled) {
                let known = bans.settled
                _ = bans.retire(known: known, before: memory.firstSuspicion, pending: nil)
            }
        }
        return BanMark(serial: serial, through: through, time: max(1, now))
    }

    private func retire() {
        let known = bans.settled
        _ = bans.retire(
            known: known, before: memory.firstSuspicion, pending: disk.index.firstWaiting)
    }

    /// Whether a response that was found is still what is stored: neither replaced nor purged.
    public func isCurrent(_ response: CachedResponse) -> Bool {
        memory.withShard(response.keyHash) { shard, _ in
            shard.verdict(response, bans).isNone
                && (shard.contains(response) || levels.contains { $0.holds(response) })
        }
    }

    /// Removes a key's responses. Returns how many in memory, and on disk.
    private func remove(
        _ key: CacheKeyView, from levels: ArraySlice<any CacheLevel>
    ) -> PurgeReceipt {
        var receipt = PurgeReceipt(id: 0)
        let (removed, work) = memory.withShard(key.hash) { shard, dropped in
            shard.invalidate(key.hash, key.bytes, except: nil, dropped: &dropped)
            var work = LevelWork()
            let onDisk = disk.index.remove(key: key.bytes)
            work.add { [disk] in disk.remove(onDisk) }
            for level in levels.dropFirst() { level.remove(key, &work) }
            return ((dropped.count, onDisk.count), work)
        }
        work.perform()
        disk.tell(key.bytes)
        (receipt.memoryEntries, receipt.diskEntries) = removed
        return receipt
    }

    /// Waits until what was purged stays so after the process was killed.
    private func makeDurable(
        _ written: [Ban], through serial: UInt64, _ phase: DiskState
    ) throws(PurgeError) {
        switch phase {
        case .off(.disabled):
            bans.hasNoDisk(through: serial)
            retire()
        // They were told to the one that has it.
        case .handedOver:
            try disk.syncTold()
            bans.keysWereTold(through: serial)
        case .ready: try disk.writeDown(written, through: serial)
        case .opening, .off: throw .notReady
        }
    }
}

extension CacheKey {
    /// The URI, without the route.
    fileprivate var uri: [UInt8] { bytes.withUnsafeBytes { [UInt8](StoredURI($0).uri) } }
}

extension PurgeReceipt {
    fileprivate mutating func add(_ other: PurgeReceipt) {
        memoryEntries += other.memoryEntries
        diskEntries += other.diskEntries
    }
}

extension Purge {
    /// What it is about.
    var bannedPatterns: [BanPattern] {
        switch scope {
        case .keys(let keys): Set(keys.map(\.uri)).map { .key($0) }
        case .prefix(let prefix): [.prefix(prefix)]
        case .host(let host): [.host(host)]
        case .tag(let tag, let origin): [.tag(tag, origin: origin)]
        case .everything: [.everything]
        case .uri(let uri): [.key(uri)]
        }
    }

    /// What is banned; empty if keys are removed.
    fileprivate var patterns: [(BanPattern, isSoft: Bool)] {
        if case .keys = scope, !isSoft { return [] }
        return bannedPatterns.map { ($0, isSoft) }
    }

    /// The URIs of the keys that are removed at once.
    fileprivate var removedURIs: [[UInt8]] { Array(Set(removedKeys.map(\.uri))) }

    /// The keys that are removed at once.
    fileprivate var removedKeys: [CacheKey] {
        guard case .keys(let keys) = scope, !isSoft else { return [] }
        return keys.flatMap { [$0, $0.ofQuery] }
    }
}
