@testable import CacheStore

/// Events on simulated disks, for counting.
enum ScriptedDiskEvent: Int, CaseIterable {
    case loaded, notFound, chunkRead, chunkFailed, written, noRoom, evicted, rotted, wentOff
    case cameBack, waitedForWriter
}

/// The disk of a world: the store's real index, queues, reader and writer, without their threads.
/// Their work is done when the world's seed says so, with rows in memory.
final class ScriptedDisk: @unchecked Sendable {
    private final class WeakChunk {
        weak var bytes: ChunkBytes?
        init(_ bytes: ChunkBytes) { self.bytes = bytes }
    }

    private unowned let world: SimulatedWorld
    private let tier: DiskTier
    let rows: ScriptedRows
    private let writer: RowWriter
    private let reader: DiskReader<ScriptedRows>
    /// Taken from the writer's queue, but not carried out yet.
    private var operations: [DiskOperation] = []
    /// Taken from the readers' queue, but not answered yet.
    private var asked: [ReadRequest] = []
    private(set) var isBusy = false
    /// The database has failed, and is not open again yet.
    private var isOff = false
    private var hasLostRemovals = false
    /// Rows have disappeared in a way that readers may notice.
    private var hasLostRows = false
    private var hadFate = false
    private var chunks: [WeakChunk] = []
    private(set) var events = [Int](repeating: 0, count: ScriptedDiskEvent.allCases.count)

    /// - Parameter previous: the disk of a process that has ended, whose rows it finds.
    init(_ world: SimulatedWorld, _ store: CacheStore, following previous: ScriptedDisk? = nil) {
        self.world = world
        tier = store.disk
        rows = previous?.rows ?? ScriptedRows()
        writer = RowWriter(store.disk)
        reader = DiskReader(store.disk, rows)
        if let previous {
            hasLostRows = previous.hasLostRows
            chunks = previous.chunks
            events = previous.events
        }
        rows.drawFate = { [unowned self] in drawFate() }
    }

    /// The process ends: what is queued is lost.
    /// - Returns: whether rows that should have been removed may still be there.
    func end() -> Bool {
        let queued = operations + tier.queue.reset()
        let wasOpen = rows.isOpen
        operations = []
        asked = []
        rows.isOpen = false
        // The files of a database that has failed are removed at that time.
        if isOff { rows.tables = ScriptedRows.Tables() }
        return !wasOpen || queued.contains(where: \.removesRows)
    }

    private func note(_ event: ScriptedDiskEvent) { events[event.rawValue] += 1 }

    // MARK: What happens

    func step() {
        // What happens meanwhile does not concern the disk.
        guard !isBusy else { return }
        isBusy = true
        defer { isBusy = false }
        guard rows.isOpen else {
            if world.random.chance(40) { open() } else { answerOne() }
            return
        }
        switch world.random.below(100) {
        case 0..<45: answerOne()
        case 45..<88: write()
        case 88..<93: collectGarbage()
        case 93..<97: evict()
        case 97..<99: rot()
        default: if world.random.chance(25) { goOff([]) }
        }
    }

    /// Does all pending work successfully.
    func settle() {
        if !rows.isOpen { open() }
        repeat {
            write()
            while answerOne() {}
        } while !operations.isEmpty || tier.queue.depth > 0 || tier.reads.count > 0
        collectGarbage()
    }

    /// The database is opened, with its previous content.
    private func open() {
        world.note("disk on", 0, rows.tables.entries.count)
        for body in rows.tables.incomplete { rows.insert(garbage: body...body) }
        rows.tables.incomplete = []
        writer.garbage = rows.tables.garbage.sorted { $0.key < $1.key }.map { $0.key...$0.value }
        var table = IndexTable()
        var bodies = SplitMap<Int64>()
        for (id, row) in rows.tables.entries.sorted(by: { $0.key < $1.key }) {
            var slot = IndexSlot()
            (slot.id, slot.keyHash, slot.varyHash) = (id, row.slot.keyHash, row.slot.varyHash)
            (slot.units, slot.accessed) = (row.slot.units, row.slot.accessed)
            slot.flags = row.body > 0 ? [.committed, .chunked] : .committed
            if row.body > 0, row.body != id { bodies[id] = row.body }
            _ = table.insert(slot, varyNames: row.varyNames)
        }
        let (count, lastID) = (table.count, rows.lastID)
        rows.isOpen = true
        isOff = false
        tier.queue.open()
        let changed = tier.index.begin(
            DiskIndex.Contents(seed: 7, table: consume table, bodies: bodies, lastID: lastID))
        if let changed {
            tier.remove(changed)
        } else if count > 0 {
            _ = tier.queue.append(.purge(through: lastID))
        }
        if hasLostRows { note(.cameBack) }
    }

    /// The database has failed. `begun`: what is not carried out.
    private func goOff(_ begun: some Sequence<DiskOperation>) {
        world.note("disk off", 0, 0)
        note(.wentOff)
        hasLostRows = true
        rows.isOpen = false
        isOff = true
        if begun.contains(where: \.removesRows) { hasLostRemovals = true }
        tier.index.turnOff(.inputOutput)
        let dropped = tier.queue.reset()
        if dropped.contains(where: \.removesRows) { hasLostRemovals = true }
        writer.discard(dropped)
        if operations.contains(where: \.removesRows) { hasLostRemovals = true }
        writer.discard(operations)
        operations = []
        writer.forget()
        if hasLostRemovals { tier.index.forgetAll() }
        hasLostRemovals = false
        if world.random.chance(50) { rows.tables = ScriptedRows.Tables() }
    }

    // MARK: Reading

    private func drawFate() -> ScriptedRows.Fate {
        guard !world.isSettling else { return .read }
        world.goOnMeanwhile()
        let fate: ScriptedRows.Fate
        switch world.random.below(100) {
        case 0..<2: fate = .damaged
        case 2..<4: fate = .missing
        case 4..<6: fate = .busy
        case 6: fate = world.random.chance(30) ? .failed : .read
        default: return .read
        }
        hadFate = true
        return fate
    }

    /// Answers one of the waiting reads, as one of several readers might; returns false if none is
    /// waiting.
    @discardableResult
    private func answerOne() -> Bool {
        while tier.reads.count > 0 {
            if let request = tier.reads.take(after: 0) { asked.append(request) }
        }
        guard !asked.isEmpty else { return false }
        let request = asked.remove(at: world.random.below(asked.count))
        hadFate = false
        switch request {
        case .load(var load, let waited):
            let completion = load.completion
            load.completion = { [unowned self] result in
                if case .found = result { note(.loaded) } else { note(.notFound) }
                if waited { note(.waitedForWriter) }
                completion(result)
            }
            reader.answer(.load(load, hasWaited: waited))
        case .chunk(let body, let index, let completion):
            reader.answer(
                .chunk(body, index: index) { [unowned self] result in
                    noteChunk(result, of: body.id, index)
                    completion(result)
                })
        }
        return true
    }

    private func noteChunk(_ result: ChunkResult, of body: Int64, _ index: Int) {
        world.note("chunk of", Int(body), index)
        guard case .chunk(let bytes) = result else {
            note(.chunkFailed)
            if !hadFate, !hasLostRows { world.fail("chunk \(index) of \(body), pinned, is gone") }
            return
        }
        note(.chunkRead)
        chunks.append(WeakChunk(bytes))
    }

    // MARK: Writing

    private func takeOperations() {
        if case .operations(let taken) = tier.queue.take(until: 0) { operations += taken }
    }

    /// Carries out part of the queue, in one transaction.
    private func write() {
        takeOperations()
        guard !operations.isEmpty, rows.isOpen else { return }
        var batch = RowBatch()
        let begun = operations
        var count = operations.count
        if !world.isSettling { count = min(count, 1 + world.random.below(6)) }
        rows.begin()
        do throws(DatabaseError) {
            for operation in begun.prefix(count) {
                operations.removeFirst()
                let hasRoom = world.isSettling || !world.random.chance(2)
                if !hasRoom { note(.noRoom) }
                try writer.carryOut(operation, hasRoom: hasRoom, rows, &batch)
            }
            if !world.isSettling, world.random.chance(1) { throw ScriptedRows.failure }
            rows.commit()
        } catch {
            rows.rollback()
            goOff(begun)
            return writer.finish(&batch)
        }
        for _ in batch.written { note(.written) }
        world.goOnMeanwhile()
        writer.finish(&batch)
    }

    private func collectGarbage() {
        guard rows.isOpen else { return }
        while (try? writer.removeGarbage(rows)) ?? false, world.isSettling {}
    }

    private func evict() {
        guard let removal = tier.index.evict(\.bytes) else { return }
        world.note("evicted", Int(removal.id), 0)
        note(.evicted)
        _ = try? writer.remove(removal, rows)
    }

    /// A row is lost, or its bytes change.
    private func rot() {
        hasLostRows = true
        note(.rotted)
        let contents = rows.tables.contents.keys.sorted()
        let chunks = rows.tables.chunks.keys.sorted()
        guard contents.count + chunks.count > 0 else { return }
        let index = world.random.below(contents.count + chunks.count)
        let isLost = world.random.chance(50)
        if index < contents.count {
            let id = contents[index]
            if isLost {
                rows.tables.contents[id] = nil
            } else if let last = rows.tables.contents[id]?.body.indices.last {
                rows.tables.contents[id]?.body[last] ^= 1
            }
        } else {
            let id = chunks[index - contents.count]
            if isLost {
                rows.tables.chunks[id] = nil
            } else {
                rows.tables.chunks[id]?.data[0] ^= 1
            }
        }
    }

    // MARK: At the end of a world

    /// What is wrong when everything has ended and been written.
    func violationAtEnd() -> String? {
        if let violation = rows.violation { return violation }
        if !asked.isEmpty || tier.reads.count > 0 { return "a read is not answered" }
        if chunks.contains(where: { $0.bytes != nil }) { return "a chunk's memory is kept" }
        let (pins, waiting, entries) = tier.index.state.withLock {
            ($0.pins.count, $0.waiting.count, $0.table.count)
        }
        if pins > 0 { return "chunks are still pinned" }
        if waiting > 0 { return "a response still waits to be written" }
        let tables = rows.tables
        if tables.entries.count != entries {
            return "\(entries) entries are known, and \(tables.entries.count) on disk"
        }
        if tables.contents.keys.contains(where: { tables.entries[$0] == nil }) {
            return "a response without an entry is left on disk"
        }
        let bodies = Set(tables.entries.values.map(\.body))
        if tables.chunks.keys.contains(where: { !bodies.contains($0 >> Schema.chunkBits) }) {
            return "chunks without an entry are left on disk"
        }
        return tables.incomplete.isEmpty ? nil : "a body is thought to be on its way"
    }
}
