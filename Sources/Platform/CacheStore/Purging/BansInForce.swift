import CachePolicy
import Locking
import Synchronization

/// The bans of a store, and how far each has been carried out. Any thread may ask it; to ask costs
/// one atomic load while there are none.
///
/// A purge gets a serial. Whatever is stored knows up to which serial bans are not about it
/// (`CachedResponse.born`, for a row its id), so that a ban can stay in force for as long as it
/// takes to carry it out without being about what is stored after it:
///
///     registered ─► shards know ─► settled ─► journal synced ─► acknowledged
///                                     │
///                                     ├─► memory swept ─┐
///                                     ├─► disk swept ───┼─► retired
///                                     └─► no request is under way that was sent before ─┘
final class BansInForce: Sendable {
    struct State: Sendable {
        var table = BanTable()
        /// The last serial given.
        var serial: UInt64 = 0
        /// The last serial whose ban all shards of memory know, with the rows that it is about, as
        /// well as all before it.
        var settled: UInt64 { registering.min().map { $0 - 1 } ?? lastSettled }
        var lastSettled: UInt64 = 0
        /// Those that not all shards know yet.
        var registering: Set<UInt64> = []
        /// All bans up to this serial have been carried out in memory.
        var memorySwept: UInt64 = 0
        /// The same on disk.
        var diskSwept: UInt64 = 0
        /// The same by transactions that a power failure may undo.
        var committedSweep: UInt64 = 0
        var committedKeys: UInt64 = 0
        /// The last serial of a pattern.
        var lastPattern: UInt64 = 0
        /// Keys that were removed, and whose rows may not be yet, by serial.
        var keys: [UInt64: BannedKeys] = [:]
        var keyBytes = 0
        /// Bans of which it is not known up to which row they go: the database was not open.
        var isUnsettled: Set<UInt64> = []
        var progress: [UInt64: PurgeProgress] = [:]
        var recent: [UInt64] = []
        var counts = PurgeCounts()
    }

    private let state = Locked(State())
    private let isActive = Atomic<Bool>(false)

    /// The number of purges whose progress is known.
    fileprivate static let progressLimit = 1024
    /// Bytes of keys that wait for the disk at most.
    static let keyLimit = 8 << 20

    // MARK: Asking

    var isInForce: Bool { isActive.load(ordering: .acquiring) }

    /// The serial to be given to what is read from now on, before it is compared with the bans.
    var settled: UInt64 { state.withLock { $0.settled } }
    var serial: UInt64 { state.withLock { $0.serial } }

    /// What they make of a stored response.
    func verdict(
        key: UnsafeRawBufferPointer, head: UnsafeRawBufferPointer, _ age: BanAge
    ) -> BanVerdict {
        guard isInForce else { return .none }
        return state.withLock { $0.table.verdict(key: key, head: head, age) }
    }

    /// The same for a response in memory, under the lock of its key.
    func verdict(_ response: CachedResponse) -> BanVerdict {
        verdict(key: response.key, head: response.head, .born(response.born))
    }

    /// - Parameter isDiskOurs: whether what is on disk is removed here, and so has to be gone.
    func progress(_ id: UInt64, isDiskOurs: Bool) -> PurgeProgress? {
        state.withLock { state in
            guard var progress = state.progress[id] else { return nil }
            let isGoneFromDisk = id <= state.diskSwept && !state.hasKeys(through: id)
            progress.isComplete = id <= state.memorySwept && (isGoneFromDisk || !isDiskOurs)
            return progress
        }
    }

    /// What is written down: bans that the disk may not have carried out.
    var unfinished: (bans: [Ban], lastSerial: UInt64) {
        state.withLock { ($0.unfinished, $0.serial) }
    }

    /// Values for metrics.
    var statistics: PurgeCounts {
        state.withLock { state in
            var counts = state.counts
            counts.patterns = state.table.count
            counts.patternsLimit = BanTable.maximumPatterns
            counts.waitingKeys = state.keys.values.reduce(0) { $0 + $1.keys.count }
            return counts
        }
    }

    /// Whether the table is nearly full.
    var isCrowded: Bool {
        state.withLock { state in
            state.table.count >= BanTable.maximumPatterns * 3 / 4
                || state.table.bytes >= BanTable.maximumBytes * 3 / 4
        }
    }

    /// All bans up to this serial have been carried out.
    var swept: UInt64 { state.withLock { min($0.memorySwept, $0.diskSwept) } }

    /// Further fields whose members are tags.
    var tagFields: [[UInt8]] { state.withLock { $0.table.tagFields } }

    /// The number of such fields at most.
    static let tagFieldLimit = 64

    func addTagFields(_ names: [[UInt8]]) {
        state.withLock { state in
            for name in names
            where !state.table.tagFields.contains(name)
                && state.table.tagFields.count < Self.tagFieldLimit
            {
                state.table.tagFields.append(name)
            }
        }
    }

    // MARK: Registering

    /// Puts bans in force. They are about rows up to `through`, and further ones once that is
    /// settled.
    /// - Parameter note: called under the lock: from now on memory is not swept.
    /// - Returns: their serial.
    func register(
        _ patterns: [(BanPattern, isSoft: Bool)], through: Int64, now: Int64, _ note: () -> Void
    ) -> UInt64 {
        state.withLock { state in
            state.serial += 1
            let mark = BanMark(serial: state.serial, through: through, time: max(1, now))
            for (pattern, isSoft) in patterns {
                let ban = Ban(pattern: pattern, isSoft: isSoft, mark: mark)
                state.counts.joined += UInt64(state.table.add(ban))
            }
            state.begin(state.serial)
            state.lastPattern = state.serial
            state.registering.insert(state.serial)
            if !state.table.isEmpty { isActive.store(true, ordering: .sequentiallyConsistent) }
            note()
            return state.serial
        }
    }

    /// Calls `body`, under the lock, if memory has nothing that is banned.
    func ifMemoryIsSwept(_ body: () -> Void) {
        state.withLock { state in if state.memorySwept >= state.lastPattern { body() } }
    }

    /// All shards know of a ban: up to which row it goes is known. `nil` if it is not yet.
    func settle(_ serial: UInt64, _ patterns: [BanPattern], through: Int64?) {
        state.withLock { state in
            if let through {
                for pattern in patterns {
                    state.table.settle(pattern, serial: serial, through: through)
                }
            } else {
                state.isUnsettled.insert(serial)
            }
            state.registering.remove(serial)
            state.lastSettled = max(state.lastSettled, serial)
        }
    }

    /// Keys whose responses have been removed, and that must stay so. Returns their serial; `nil`
    /// if too many wait for the disk.
    func register(_ banned: BannedKeys) -> UInt64? {
        state.withLock { state in
            guard state.keyBytes + banned.count <= Self.keyLimit else { return nil }
            state.serial += 1
            state.keys[state.serial] = banned
            state.keyBytes += banned.count
            state.begin(state.serial)
            state.lastSettled = max(state.lastSettled, state.serial)
            // Nothing has to be searched for them.
            state.skipKeys()
            return state.serial
        }
    }

    /// A transaction has removed the rows of all keys up to a serial.
    func keysAreGone(through serial: UInt64) {
        state.withLock { $0.committedKeys = max($0.committedKeys, serial) }
    }

    /// Whether something was committed that is not known to be on the device.
    var waitsForCheckpoint: Bool {
        state.withLock { state in
            state.committedSweep > state.diskSwept || state.hasKeys(through: state.committedKeys)
        }
    }

    /// What was committed until now is on the device.
    func checkpointed() {
        state.withLock { state in
            state.diskSwept = max(state.diskSwept, state.committedSweep)
            state.forgetKeys(through: state.committedKeys)
        }
    }

    /// The keys were told to the process that has the database.
    func keysWereTold(through serial: UInt64) {
        state.withLock { $0.forgetKeys(through: serial) }
    }

    /// There is no database.
    func hasNoDisk(through serial: UInt64) {
        state.withLock { state in
            state.forgetKeys(through: serial)
            state.diskSwept = max(state.diskSwept, serial)
        }
    }

    // MARK: Carrying out

    /// The serial up to which memory has to be swept; `nil` if it has been.
    var memoryTarget: UInt64? {
        state.withLock { $0.memorySwept < $0.settled ? $0.settled : nil }
    }

    /// The patterns for which the disk has to be swept.
    var unswept: [BanPattern] {
        state.withLock { state in
            let swept = max(state.diskSwept, state.committedSweep)
            return state.table.all.filter { $0.mark.serial > swept }.map(\.pattern)
        }
    }

    func sweptMemory(through serial: UInt64) {
        state.withLock { $0.memorySwept = max($0.memorySwept, serial) }
    }

    /// The serial up to which the disk has to be swept, and the last row; `nil` if it has been.
    var diskTarget: (serial: UInt64, through: Int64)? {
        state.withLock { state in
            let swept = max(state.diskSwept, state.committedSweep)
            guard swept < state.settled else { return nil }
            var through: Int64 = 0
            for ban in state.table.all where ban.mark.serial > swept {
                through = max(through, ban.mark.through)
            }
            return (state.settled, through)
        }
    }

    /// Transactions have removed the rows of all bans up to a serial.
    func sweptDisk(through serial: UInt64) {
        state.withLock { $0.committedSweep = max($0.committedSweep, serial) }
    }

    /// Counts what has been removed, or made stale.
    func count(_ verdict: BanVerdict, inMemory: Bool) {
        let serial: UInt64
        switch verdict {
        case .none: return
        case .gone(let by), .stale(let by, _): serial = by
        }
        count(serial, memory: inMemory ? 1 : 0, disk: inMemory ? 0 : 1)
    }

    func count(_ serial: UInt64, memory: Int, disk: Int) {
        state.withLock { state in
            state.progress[serial]?.memoryEntries += memory
            state.progress[serial]?.diskEntries += disk
            state.counts.memoryEntries += UInt64(memory)
            state.counts.diskEntries += UInt64(disk)
        }
    }

    /// Ends what has been carried out everywhere.
    /// - Parameters:
    ///   - known: `settled` before the others were determined: what was banned since is left alone.
    ///   - suspicion: the serial of the first ban that a request under way may have preceded.
    ///   - pending: the first row that is yet to be written.
    /// - Returns: the serial up to which nothing is left to be done on disk.
    func retire(known: UInt64, before suspicion: UInt64?, pending: Int64?) -> UInt64 {
        state.withLock { state in
            let swept = min(known, state.memorySwept, state.diskSwept)
            _ = state.table.retire { mark in
                mark.serial <= swept && mark.serial < suspicion ?? .max
                    && mark.through < pending ?? .max
            }
            if state.table.isEmpty {
                isActive.store(false, ordering: .sequentiallyConsistent)
                state.skipKeys()
            }
            return state.finished
        }
    }

    // MARK: The disk opens

    /// Takes over what was written down, and what was purged before the database was open.
    /// - Parameter lastID: of the rows that are there.
    func take(_ found: PurgeJournal.Contents, lastID: Int64) {
        state.withLock { state in
            state.serial = max(state.serial, found.lastSerial)
            state.settleRows(through: lastID)
            for var ban in found.bans {
                ban.mark.isOfRows = true
                state.counts.joined += UInt64(state.table.add(ban))
            }
            if found.isDamaged {
                state.serial += 1
                let mark = BanMark(
                    serial: state.serial, through: lastID, time: 1, isOfRows: true)
                _ = state.table.add(Ban(pattern: .everything, isSoft: false, mark: mark))
            }
            // The rows have to be searched again.
            let isDone = state.table.isEmpty
            let hasSweptMemory = state.memorySwept >= state.lastSettled
            (state.diskSwept, state.committedSweep) = isDone ? (state.serial, state.serial) : (0, 0)
            state.lastSettled = max(state.lastSettled, state.serial)
            if hasSweptMemory { state.memorySwept = state.settled }
            guard !isDone else { return }
            state.lastPattern = state.serial
            isActive.store(true, ordering: .sequentiallyConsistent)
        }
    }

    /// The index has been read: what was banned before is about rows up to this one.
    func settleRows(through lastID: Int64) {
        state.withLock { $0.settleRows(through: lastID) }
    }

    /// The largest row that a ban is about.
    var lastRow: Int64 { state.withLock { $0.table.all.map(\.mark.through).max() ?? 0 } }
}

/// Keys that were removed by one purge, up to a row.
struct BannedKeys: Sendable {
    let keys: [[UInt8]]
    let through: Int64
    var count: Int { keys.reduce(0) { $0 + $1.count } }

    /// As they are written down.
    func bans(_ serial: UInt64) -> [Ban] {
        keys.map {
            Ban(
                pattern: .key($0), isSoft: false,
                mark: BanMark(serial: serial, through: through, time: 1))
        }
    }
}

extension BansInForce.State {
    mutating func begin(_ serial: UInt64) {
        progress[serial] = PurgeProgress()
        recent.append(serial)
        if recent.count > BansInForce.progressLimit { progress[recent.removeFirst()] = nil }
    }

    mutating func settleRows(through lastID: Int64) {
        guard !isUnsettled.isEmpty else { return }
        for ban in table.all where isUnsettled.contains(ban.mark.serial) {
            table.settle(ban.pattern, serial: ban.mark.serial, through: lastID)
        }
        isUnsettled = []
    }

    /// Beyond the last pattern there are only keys, for which nothing has to be searched.
    mutating func skipKeys() {
        guard registering.isEmpty else { return }
        if table.isEmpty || memorySwept >= lastPattern {
            memorySwept = max(memorySwept, lastSettled)
        }
        guard table.isEmpty || diskSwept >= lastPattern else { return }
        diskSwept = max(diskSwept, lastSettled)
        committedSweep = max(committedSweep, lastSettled)
    }

    mutating func forgetKeys(through serial: UInt64) {
        for (number, banned) in keys where number <= serial {
            keyBytes -= banned.count
            keys[number] = nil
        }
    }

    func hasKeys(through serial: UInt64) -> Bool { keys.keys.contains { $0 <= serial } }

    /// Up to which serial the disk has nothing left to do.
    var finished: UInt64 {
        let keys = self.keys.keys.min().map { $0 - 1 } ?? .max
        return min(diskSwept, keys)
    }

    var unfinished: [Ban] {
        let ofKeys = keys.flatMap { serial, keys in
            keys.bans(serial)
        }
        return table.all.filter { $0.mark.serial > finished } + ofKeys
    }
}
