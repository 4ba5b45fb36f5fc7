import CachePolicy
import Locking

/// Rows to be removed for an entry that left the index.
struct Removal: Sendable, Equatable {
    let id: Int64
    let body: BodyFate
}

/// What becomes of the chunks of an entry that left the index.
enum BodyFate: Sendable, Equatable {
    /// There are none, or another entry has taken them over.
    case none
    /// To be removed.
    case drop(Int64)
    /// Somebody is reading them: to be removed when that ends, at the latest at the next start.
    case hold(Int64)
}

/// An entry that may answer a load.
struct IndexCandidate: Sendable {
    enum Place: Sendable {
        /// Its rows are not yet written, but here it is.
        case waiting(CachedResponse)
        /// A reader finds its rows. `body`: chunks that have been pinned for it; 0: none.
        case committed(body: Int64)
        /// Its last chunks and its rows are queued.
        case beingWritten
    }
    let token: IndexToken
    let place: Place
}

/// What is on disk and what is on its way there, so that a miss needs no thread.
///
/// One lock, held for well under a microsecond at a time. It nests inside a memory shard's lock
/// and takes no other. Every change of a key's entries is made under the lock of the key's shard,
/// so that the two tiers agree on it (see `CacheStore`).
final class DiskIndex: Sendable {
    struct State {
        var phase: DiskState
        /// Seed of the key hashes, from the database.
        var seed: UInt64 = 0
        var nextID: Int64 = 1
        var table = IndexTable()
        /// Responses whose rows are queued.
        var waiting: [Int64: CachedResponse] = [:]
        /// Entry id to body id, where a 304 made them differ.
        var bodies: [Int64: Int64] = [:]
        var pins: [Int64: Pin] = [:]
        /// Entries whose last use is not written down yet.
        var accesses: [IndexToken] = []
        var journal = IndexJournal()
        var evictions: UInt64 = 0
    }

    struct Pin {
        var count = 0
        /// The entry is gone; the last reader's end removes the chunks.
        var isDoomed = false
    }

    let state: Locked<State>
    /// A last use is noted down if it is this much later than the one on disk.
    private let accessSeconds: UInt32

    init(phase: DiskState, accessSeconds: Int) {
        state = Locked(State(phase: phase))
        self.accessSeconds = UInt32(clamping: accessSeconds)
    }

    var phase: DiskState { state.withLock { $0.phase } }

    static func varyHash(_ vary: [UInt8], seed: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: vary.withUnsafeBytes { XXHash64.hash($0, seed: seed) })
    }

    // MARK: Entries coming and going. Called under the lock of the key's memory shard.

    /// Takes up a response that is about to be queued for writing, in place of the variant it
    /// replaces. Answers its token, and the rows that thereby have to go. While the tier is not
    /// ready there is no token, and that the key changed is noted.
    ///
    /// - Parameters:
    ///   - bytes: what it will take on disk; nil: it only replaces.
    ///   - body: the id under which its chunks were streamed; 0: it is written from memory.
    ///   - isChunked: its body is, or will be, in chunks.
    func admit(_ response: CachedResponse, bytes: Int64?, body: Int64, isChunked: Bool)
        -> (token: IndexToken, removals: [Removal])
    {
        state.withLock { state in
            guard state.phase == .ready else {
                state.journal.note(response.key, vary: response.varyKey.bytes, in: state.phase)
                return (.none, [])
            }
            let keyHash = XXHash64.hash(response.key, seed: state.seed)
            let varyHash = Self.varyHash(response.varyKey.bytes, seed: state.seed)
            let removals = state.remove(keyHash: keyHash, varyHash: varyHash)
            guard let bytes else { return (.none, removals) }
            let id = body > 0 ? body : state.takeID()
            let token = state.insert(
                id: id, keyHash: keyHash, varyHash: varyHash, bytes: bytes,
                flags: isChunked ? .chunked : [])
            if body == 0 { state.waiting[id] = response }
            return (token, removals)
        }
    }

    /// What a 304 does to the entry it confirmed.
    enum Succession: Sendable {
        /// It is not there, or will be written from memory, or lies in one row: write it anew.
        case rewrite
        /// A new entry has taken over its chunks, which are pinned for it.
        case takenOver(IndexToken, body: Int64, [Removal])
    }

    /// Lets a new entry take over the chunks of an old one whose head (and perhaps Vary key) alone
    /// has changed.
    func succeed(_ old: IndexToken, with response: CachedResponse) -> Succession {
        state.withLock { state in
            guard state.phase == .ready, state.table.isLive(old),
                state.table[old.slot].flags.contains(.chunked),
                // Waiting with chunks that are yet to be written, not taken over themselves.
                state.waiting[old.id] == nil || state.bodies[old.id] != nil
            else { return .rewrite }
            let entry = state.table.remove(old.slot)
            let body = state.bodies.removeValue(forKey: old.id) ?? old.id
            state.waiting[old.id] = nil
            state.pins[body, default: Pin()].count += 1
            let varyHash = Self.varyHash(response.varyKey.bytes, seed: state.seed)
            var removals = state.remove(keyHash: entry.keyHash, varyHash: varyHash)
            removals.append(Removal(id: old.id, body: .none))
            let id = state.takeID()
            state.bodies[id] = body
            state.waiting[id] = response
            let token = state.insert(
                id: id, keyHash: entry.keyHash, varyHash: varyHash, bytes: entry.bytes,
                flags: .chunked)
            return .takenOver(token, body: body, removals)
        }
    }

    /// Removes every variant of a key.
    func remove(key: UnsafeRawBufferPointer) -> [Removal] {
        state.withLock { state in
            guard state.phase == .ready else {
                state.journal.note(key, vary: nil, in: state.phase)
                return []
            }
            return state.remove(keyHash: XXHash64.hash(key, seed: state.seed))
        }
    }

    /// Removes one entry; nil if it is no longer there.
    func remove(_ token: IndexToken) -> Removal? {
        state.withLock { state in
            state.table.isLive(token) ? state.remove(token.slot) : nil
        }
    }

    /// Removes the entry whose chunks these are, if it is still there. Rare: looks at all of them.
    func remove(body: Int64) -> Removal? {
        state.withLock { state in
            for slot in state.table.slots.indices {
                let entry = state.table.slots[slot]
                guard entry.id > 0, entry.flags.contains(.chunked),
                    (state.bodies[entry.id] ?? entry.id) == body
                else { continue }
                return state.remove(Int32(slot))
            }
            return nil
        }
    }

    /// Whether an entry is still there. When it is, its use is noted, and that memory has it.
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

    /// Whether the disk may hold the key: a load is worth the while.
    func mayHold(_ key: UnsafeRawBufferPointer) -> Bool {
        state.withLock { state in
            state.phase == .ready && state.table.count > 0
                && state.table.first(XXHash64.hash(key, seed: state.seed)) >= 0
        }
    }

    /// The entries that may be a key's, at most `limit`; their chunks are pinned, and counts as
    /// used now.
    func candidates(_ key: UnsafeRawBufferPointer, limit: Int, now: UInt32) -> [IndexCandidate] {
        state.withLock { state in
            guard state.phase == .ready else { return [] }
            var found: [IndexCandidate] = []
            var slot = state.table.first(XXHash64.hash(key, seed: state.seed))
            while slot >= 0, found.count < limit {
                let token = state.table.token(slot)
                let entry = state.table[slot]
                var place = IndexCandidate.Place.beingWritten
                if let waiting = state.waiting[token.id] {
                    place = .waiting(waiting)
                } else if entry.flags.contains(.committed) {
                    var body: Int64 = 0
                    if entry.flags.contains(.chunked) {
                        body = state.bodies[token.id] ?? token.id
                        state.pins[body, default: Pin()].count += 1
                    }
                    place = .committed(body: body)
                }
                found.append(IndexCandidate(token: token, place: place))
                state.use(slot, now: now, every: accessSeconds)
                slot = state.table.next(slot)
            }
            return found
        }
    }

    /// An entry has made room in memory. What was kept there until now is not what the disk
    /// should give up first.
    func leftMemory(_ token: IndexToken, now: UInt32) {
        state.withLock { state in
            guard state.table.isLive(token) else { return }
            state.table.setFlags(token.slot, state.table[token.slot].flags.subtracting(.resident))
            state.use(token.slot, now: now, every: accessSeconds)
        }
    }

    // MARK: Chunks

    /// An id for a body about to be received; nil while the tier is not ready.
    func beginBody() -> Int64? {
        state.withLock { state in state.phase == .ready ? state.takeID() : nil }
    }

    /// Keeps a body's chunks readable until `unpin`.
    func pin(_ body: Int64) { state.withLock { $0.pins[body, default: Pin()].count += 1 } }

    /// The end of a `pin`. true: the entry is gone and nobody reads it any more; the chunks have
    /// to be removed.
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

    mutating func insert(
        id: Int64, keyHash: UInt64, varyHash: UInt32, bytes: Int64, flags: IndexFlags
    ) -> IndexToken {
        var entry = IndexSlot()
        entry.id = id
        entry.keyHash = keyHash
        entry.varyHash = varyHash
        entry.units = UInt32(
            clamping: (bytes + IndexSlot.unitBytes - 1) / IndexSlot.unitBytes)
        entry.accessed = StoreClock.seconds()
        entry.flags = flags
        return table.insert(entry)
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

    mutating func remove(keyHash: UInt64, varyHash: UInt32) -> [Removal] {
        var removals: [Removal] = []
        var slot = table.first(keyHash)
        while slot >= 0 {
            let next = table.next(slot)
            if table[slot].varyHash == varyHash { removals.append(remove(slot)) }
            slot = next
        }
        return removals
    }

    mutating func remove(_ slot: Int32) -> Removal {
        let entry = table.remove(slot)
        waiting[entry.id] = nil
        guard entry.flags.contains(.chunked) else { return Removal(id: entry.id, body: .none) }
        let body = bodies.removeValue(forKey: entry.id) ?? entry.id
        guard pins[body] != nil else { return Removal(id: entry.id, body: .drop(body)) }
        pins[body]?.isDoomed = true
        return Removal(id: entry.id, body: .hold(body))
    }

    mutating func use(_ slot: Int32, now: UInt32, every seconds: UInt32) {
        table.touch(slot)
        guard now > table[slot].accessed, now - table[slot].accessed >= seconds else { return }
        table.setAccessed(slot, now)
        guard !table[slot].flags.contains(.accessedChanged) else { return }
        table.setFlags(slot, table[slot].flags.union(.accessedChanged))
        accesses.append(table.token(slot))
    }
}
