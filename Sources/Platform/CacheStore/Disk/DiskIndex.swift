import CachePolicy
import Locking

/// Rows to be removed for an entry that left the index.
struct Removal: Sendable, Equatable {
    let id: Int64
    let body: BodyDisposition
}

/// What to do with the chunks of an entry that left the index.
enum BodyDisposition: Sendable, Equatable {
    /// Nothing: there are none, or another entry has taken them over.
    case none
    /// Remove them.
    case drop(Int64)
    /// Somebody is reading them: remove them when that ends, or at the next start at the latest.
    case hold(Int64)
}

/// An entry that may satisfy a load.
struct IndexCandidate: Sendable {
    enum Place: Sendable {
        /// Its rows are not yet written; this is the response.
        case waiting(CachedResponse)
        /// A reader can find its rows. `body` is the id of the chunks that have been pinned for it,
        /// or 0.
        case committed(body: Int64)
        /// Its last chunks and its rows are queued.
        case beingWritten
    }
    let token: IndexToken
    let place: Place
}

/// Knows what is on disk and what is on its way there, so that a miss needs no thread.
///
/// It has one lock, held for well under a microsecond at a time. The lock nests inside a memory
/// shard's lock and takes no other, except for the queue's when everything is purged. Every change
/// of a key's entries is made under the lock of the key's shard, so that the two tiers agree on it
/// (see `CacheStore`).
final class DiskIndex: Sendable {
    struct State {
        var phase: DiskState
        /// Seed of the key hashes, from the database.
        var seed: UInt64 = 0
        var nextID: Int64 = 1
        var table = IndexTable()
        /// Responses whose rows are queued.
        var waiting = SplitMap<CachedResponse>()
        /// Entries whose bodies were streamed, and whose rows are queued.
        var streamed: Set<Int64> = []
        /// Entry id to body id, where a 304 made them differ.
        var bodies = SplitMap<Int64>()
        var pins: [Int64: Pin] = [:]
        /// Entries whose last use has not been written yet.
        var accesses: [IndexToken] = []
        /// Uses that are not in the rows yet, by id.
        var hits: [Int64: UInt32] = [:]
        var journal = IndexJournal()
        var evictions = DiskEvictions()
        /// The bodies whose chunks stay readable here after the database was handed over; `nil`
        /// unless it was.
        var handedBodies: Set<Int64>?
        /// Whether it is being read again, to go on with it.
        var isTakingBack = false

        /// Whether entries can be read.
        var isReadable: Bool { phase == .ready || phase == .handedOver }
    }

    struct Pin {
        var count = 0
        /// The entry is gone; when the last reader ends, the chunks are removed.
        var isDoomed = false
    }

    let state: Locked<State>
    /// The maximum number of last uses that wait to be written; the others are not on disk until
    /// the entry is used again.
    static let accessLimit = 1 << 16
    /// A last use is recorded if it is at least this much later than the one on disk.
    private let accessSeconds: UInt32
    /// The maximum number of variants of one key.
    private let variantLimit: Int

    init(phase: DiskState, accessSeconds: Int, variantLimit: Int = 64) {
        state = Locked(State(phase: phase))
        self.accessSeconds = UInt32(clamping: accessSeconds)
        self.variantLimit = max(1, variantLimit)
    }

    var phase: DiskState { state.withLock { $0.phase } }
    var isReadable: Bool { state.withLock { $0.isReadable } }

    static func varyHash(_ vary: [UInt8], seed: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: vary.withUnsafeBytes { XXHash64.hash($0, seed: seed) })
    }

    // MARK: Entries being added and removed. Called under the lock of the key's memory shard.

    /// Adds a response that is about to be queued for writing, replacing the variant with the same
    /// Vary key. Returns its token, and the rows that must be removed as a result. While the tier
    /// is not ready there is no token, and only the change of the key is recorded.
    ///
    /// - Parameters:
    ///   - bytes: the space it will take on disk; `nil` if it only replaces.
    ///   - body: the id under which its chunks were streamed; 0 if it is written from memory.
    ///   - isChunked: whether its body is, or will be, in chunks.
    func admit(_ response: CachedResponse, bytes: Int64?, body: Int64, isChunked: Bool)
        -> (token: IndexToken, removals: [Removal])
    {
        let varyNames = response.varyKey.names
        return state.withLock { state in
            guard state.phase == .ready else {
                state.noteChange(response.key, vary: response.varyKey.bytes)
                return (.none, [])
            }
            let keyHash = XXHash64.hash(response.key, seed: state.seed)
            let varyHash = Self.varyHash(response.varyKey.bytes, seed: state.seed)
            var removals = state.remove(keyHash: keyHash, varyHash: varyHash)
            guard let bytes else { return (.none, removals) }
            state.makeRoomForVariant(keyHash, limit: variantLimit, removals: &removals)
            let id = body > 0 ? body : state.takeID()
            let entry = IndexSlot(
                id: id, keyHash: keyHash, varyHash: varyHash, bytes: bytes,
                flags: isChunked ? .chunked : [])
            let token = state.table.insert(entry, varyNames: varyNames)
            if body == 0 { state.waiting[id] = response } else { state.streamed.insert(id) }
            return (token, removals)
        }
    }

    /// The effect of a 304 on the entry that it confirmed.
    enum Succession: Sendable {
        /// It is not there, or will be written from memory, or is in one row: write it again.
        case rewrite
        /// A new entry has taken over its chunks, which are pinned for it.
        case takenOver(IndexToken, body: Int64, [Removal])
    }

    /// Lets a new entry take over the chunks of an old one of which only the head (and perhaps the
    /// Vary key) has changed.
    func succeed(_ old: IndexToken, with response: CachedResponse) -> Succession {
        let varyNames = response.varyKey.names
        return state.withLock { state in
            guard state.phase == .ready, state.table.isLive(old),
                state.table[old.slot].flags.contains(.chunked),
                // Waiting with chunks that are yet to be written, rather than taken over.
                state.waiting[old.id] == nil || state.bodies[old.id] != nil
            else { return .rewrite }
            let entry = state.table.remove(old.slot)
            let body = state.bodies.removeValue(old.id) ?? old.id
            state.waiting[old.id] = nil
            state.pins[body, default: Pin()].count += 1
            let varyHash = Self.varyHash(response.varyKey.bytes, seed: state.seed)
            var removals = state.remove(keyHash: entry.keyHash, varyHash: varyHash)
            removals.append(Removal(id: old.id, body: .none))
            let id = state.takeID()
            state.bodies[id] = body
            state.waiting[id] = response
            let successor = IndexSlot(
                id: id, keyHash: entry.keyHash, varyHash: varyHash, bytes: entry.bytes,
                flags: .chunked)
            let token = state.table.insert(successor, varyNames: varyNames)
            return .takenOver(token, body: body, removals)
        }
    }

    /// Removes every variant of a key.
    func remove(key: UnsafeRawBufferPointer) -> [Removal] {
        state.withLock { state in
            guard state.phase == .ready else {
                state.noteChange(key, vary: nil)
                return []
            }
            return state.remove(keyHash: XXHash64.hash(key, seed: state.seed))
        }
    }

    /// Removes a response's entry, and not that of its successor; any entry of its variant, if it
    /// has none that is known. While the tier is not ready, the change of the variant is recorded.
    /// Returns the rows that must be removed as a result.
    func remove(_ response: CachedResponse) -> [Removal] {
        let token = response.token
        return state.withLock { state in
            if state.phase != .handedOver, state.table.isLive(token) {
                return [state.remove(token.slot)]
            }
            guard state.phase == .ready else {
                state.noteChange(response.key, vary: response.varyKey.bytes)
                return []
            }
            // If the database was opened again since, the entry has another slot and the same id.
            return state.remove(
                keyHash: XXHash64.hash(response.key, seed: state.seed),
                varyHash: Self.varyHash(response.varyKey.bytes, seed: state.seed),
                id: token == .none ? nil : token.id)
        }
    }

    /// Removes one entry; `nil` if it is no longer there.
    func remove(_ token: IndexToken) -> Removal? {
        state.withLock { state in
            state.table.isLive(token) ? state.remove(token.slot) : nil
        }
    }

    /// Removes the entry that these chunks belong to, if it is still there. Rare: searches all
    /// entries, a few at a time. One that moves meanwhile may be missed.
    func remove(body: Int64) -> Removal? {
        var start: Int32 = 0
        while let (removal, next) = remove(body: body, from: start) {
            if let removal { return removal }
            start = next
        }
        return nil
    }

    /// The entries searched under one lock.
    private static let searchStep: Int32 = 4096

    /// Searches from a slot on; `nil` if there are none left.
    private func remove(body: Int64, from start: Int32) -> (Removal?, next: Int32)? {
        state.withLock { state in
            let end = min(Int32(state.table.slotCount), start + Self.searchStep)
            guard start < end else { return nil }
            for slot in start..<end {
                let entry = state.table[slot]
                guard entry.id > 0, entry.flags.contains(.chunked),
                    (state.bodies[entry.id] ?? entry.id) == body
                else { continue }
                return (state.remove(slot), end)
            }
            return (nil, end)
        }
    }

    /// Whether an entry is still there. If so, records its use, and whether memory has it.
    func promote(_ token: IndexToken, resident: Bool) -> Bool {
        state.withLock { state in
            guard state.table.isLive(token) else { return false }
            if resident {
                state.table.setFlags(token.slot, state.table[token.slot].flags.union(.resident))
            }
            return true
        }
    }

    func isLive(_ token: IndexToken) -> Bool { state.withLock { $0.table.isLive(token) } }

    // MARK: Looking

    /// Whether the disk may hold the key, so that a load is worthwhile.
    func mayHold(_ key: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            state.isReadable && state.table.count > 0
                && state.table.first(XXHash64.hash(key, seed: state.seed)) >= 0
        }
    }

    /// The different lists of names that a key's variants nominate; empty if the disk does not have
    /// the key. A `nil` element stands for a variant whose names are unknown here.
    func varyNames(_ key: UnsafeRawBufferPointer) -> [[UInt8]?] {
        state.withLock { state in
            guard state.isReadable, state.table.count > 0 else { return [] }
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            guard slot >= 0 else { return [] }
            var seen: [UInt16] = []
            while slot >= 0 {
                let names = state.table[slot].names
                if !seen.contains(names) { seen.append(names) }
                slot = state.table.next(slot)
            }
            return seen.map { state.table.varyNames[$0] }
        }
    }

    /// Whether one of a key's entries may be among `variants`, so that a load is worthwhile.
    func mayHold(_ key: UnsafeRawBufferPointer, _ variants: [VaryKey]) -> Bool {
        state.withLock { state in
            guard state.isReadable else { return false }
            let hashes = variants.map { Self.varyHash($0.bytes, seed: state.seed) }
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0 {
                if state.table[slot].isOne(of: hashes) { return true }
                slot = state.table.next(slot)
            }
            return false
        }
    }

    /// The maximum number of a key's entries that are read for one request. There is one variant
    /// for each list of names, of which a site has one or two, and there may be entries with
    /// unknown names.
    private static let candidateLimit = 8

    /// Those of a key's entries that may be among `variants` (all if `nil`); their chunks are
    /// pinned, and each counts as used now. Nothing else of the key is read, whatever the number
    /// and size of its variants.
    /// - Parameter now: `nil` if they are only looked at.
    func candidates(
        _ key: UnsafeRawBufferPointer, _ variants: [VaryKey]?, now: UInt32?
    ) -> [IndexCandidate] {
        state.withLock { state in
            guard state.isReadable else { return [] }
            let hashes = variants?.map { Self.varyHash($0.bytes, seed: state.seed) }
            var found: [IndexCandidate] = []
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0, variants == nil || found.count < Self.candidateLimit {
                if hashes.map({ state.table[slot].isOne(of: $0) }) ?? true {
                    found.append(state.candidate(slot))
                    if let now { state.use(slot, now: now, every: accessSeconds) }
                }
                slot = state.table.next(slot)
            }
            return found
        }
    }

    /// Called when an entry has been evicted from memory.
    /// - Parameter wasUsed: what memory found for requests should not be the first that the disk
    ///   evicts.
    func leftMemory(_ token: IndexToken, wasUsed: Bool, now: UInt32) {
        state.withLock { state in
            guard state.table.isLive(token) else { return }
            state.table.setFlags(token.slot, state.table[token.slot].flags.subtracting(.resident))
            if wasUsed { state.use(token.slot, now: now, every: accessSeconds) }
        }
    }

    // MARK: Chunks

    /// An id for a body about to be received; `nil` while the tier is not ready.
    func beginBody() -> Int64? {
        state.withLock { state in state.phase == .ready ? state.takeID() : nil }
    }

    /// Keeps a body's chunks readable until `unpin`. Returns `false` if that cannot be promised:
    /// the database was handed over, and its new writer does not know of this body.
    @discardableResult
    func pin(_ body: Int64) -> Bool {
        state.withLock { state in
            if let bodies = state.handedBodies, !bodies.contains(body) { return false }
            state.pins[body, default: Pin()].count += 1
            return true
        }
    }

    /// Ends a `pin`. Returns `true` if the entry is gone and nobody is reading it any more: the
    /// chunks must then be removed.
    func unpin(_ body: Int64) -> Bool {
        state.withLock { state in
            guard var pin = state.pins[body] else { return false }
            pin.count -= 1
            state.pins[body] = pin.count > 0 ? pin : nil
            return pin.count == 0 && pin.isDoomed
        }
    }
}

extension DiskIndex.State {
    mutating func takeID() -> Int64 {
        defer { nextID += 1 }
        return nextID
    }

    /// Removes the least recently used variants of a key, so that there is room for one more.
    mutating func makeRoomForVariant(
        _ keyHash: UInt64, limit: Int, removals: inout [Removal]
    ) {
        while true {
            var count = 0
            var leastUsed: Int32 = -1
            var slot = table.first(keyHash)
            while slot >= 0 {
                count += 1
                // The chain has the latest first: among equally old ones, its last.
                if leastUsed < 0 || table[slot].accessed <= table[leastUsed].accessed {
                    leastUsed = slot
                }
                slot = table.next(slot)
            }
            guard count >= limit else { return }
            evictions.variants += 1
            removals.append(remove(leastUsed))
        }
    }

    /// How to read an entry. Its chunks are pinned for it.
    mutating func candidate(_ slot: Int32) -> IndexCandidate {
        let token = table.token(slot)
        if let waiting = waiting[token.id] {
            return IndexCandidate(token: token, place: .waiting(waiting))
        }
        let flags = table[slot].flags
        guard flags.contains(.committed) else {
            return IndexCandidate(token: token, place: .beingWritten)
        }
        var body: Int64 = 0
        if flags.contains(.chunked) {
            body = bodies[token.id] ?? token.id
            pins[body, default: DiskIndex.Pin()].count += 1
        }
        return IndexCandidate(token: token, place: .committed(body: body))
    }

    mutating func remove(keyHash: UInt64) -> [Removal] {
        var removals: [Removal] = []
        var slot = table.first(keyHash)
        while slot >= 0 {
            let next = table.next(slot)
            removals.append(remove(slot))
            slot = next
        }
        return removals
    }

    /// Removes the entries of a variant; only the one with this id, unless that is `nil`.
    mutating func remove(keyHash: UInt64, varyHash: UInt32, id: Int64? = nil) -> [Removal] {
        var removals: [Removal] = []
        var slot = table.first(keyHash)
        while slot >= 0 {
            let next = table.next(slot)
            let entry = table[slot]
            if entry.varyHash == varyHash, id == nil || id == entry.id {
                removals.append(remove(slot))
            }
            slot = next
        }
        return removals
    }

    mutating func remove(_ slot: Int32) -> Removal {
        let entry = table.remove(slot)
        waiting[entry.id] = nil
        if !streamed.isEmpty { streamed.remove(entry.id) }
        if !hits.isEmpty { hits[entry.id] = nil }
        guard entry.flags.contains(.chunked) else { return Removal(id: entry.id, body: .none) }
        let body = bodies.removeValue(entry.id) ?? entry.id
        guard pins[body] != nil else { return Removal(id: entry.id, body: .drop(body)) }
        pins[body]?.isDoomed = true
        return Removal(id: entry.id, body: .hold(body))
    }
}
