import CLinux
import CSQLite

/// Memory that is reused for records and pieces of bodies.
final class RowScratch {
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    deinit { memory.deallocate() }

    /// `count` bytes, with arbitrary contents.
    func bytes(_ count: Int) -> UnsafeMutableRawBufferPointer {
        if memory.count < count {
            memory.deallocate()
            memory = .allocate(byteCount: max(count, memory.count * 2), alignment: 16)
        }
        return UnsafeMutableRawBufferPointer(rebasing: memory[..<count])
    }
}

/// What one transaction has done, for after its commit.
struct RowBatch {
    var written: [IndexToken] = []
    var barriers: [@Sendable () -> Void] = []
    var chunks: [ChunkBytes] = []
    var reserved = 0
    var bytes = 0
    var operations = 0
    /// The approximate number of changed pages, and how many more pages may be used.
    var changedPages = 0
    var room: Int64 = 0
}

/// Carries out the writer's operations: inserts responses as rows, and removes rows.
///
/// It knows nothing about files and transactions, so that a test can keep the rows elsewhere.
final class RowWriter {
    private let tier: DiskTier
    private let options: CacheStoreOptions
    /// Ranges of ids whose content and chunks are still to be removed.
    var garbage: [ClosedRange<Int64>] = []
    /// Bodies being received.
    private var receiving: Set<Int64> = []
    /// Bodies for which there was no space while they were received: until they are dropped, the
    /// rest of them is not written, nor any row that refers to them.
    private var abandoned: Set<Int64> = []
    /// The row removed last, to distinguish rows on one page from rows all over the file.
    private var lastRemoved: Int64 = 0
    /// Reused for every record.
    private let scratch = RowScratch()

    init(_ tier: DiskTier) {
        self.tier = tier
        options = tier.options
    }

    /// Called after the commit, or after its failure: the index then no longer knows the tokens.
    func finish(_ batch: inout RowBatch) {
        tier.index.committed(batch.written)
        tier.counters.writes.wrappingAdd(UInt64(batch.written.count), ordering: .relaxed)
        tier.budget.release(batch.reserved)
        for chunk in batch.chunks { chunk.isWritten.store(true, ordering: .releasing) }
        for completion in batch.barriers { completion() }
        batch = RowBatch()
    }

    /// Carries out an operation, within a transaction.
    ///
    /// - Parameter hasRoom: whether there is space for it.
    func carryOut(
        _ operation: DiskOperation, hasRoom: Bool, _ connection: some WritableRows,
        _ batch: inout RowBatch
    ) throws(DatabaseError) {
        batch.changedPages += 1 + operation.pageBytes / Schema.pageBytes
        switch operation {
        case .row(let response, let superseded, let reserved):
            batch.reserved += reserved
            for removal in superseded { batch.changedPages += try remove(removal, connection) }
            guard hasRoom, !isAbandoned(response) else {
                return try refuse(response, connection)
            }
            if try write(response, connection) { batch.written.append(response.token) }
        case .beginBody(let body):
            try connection.insert(incomplete: body)
            receiving.insert(body)
        case .chunk(let body, let index, let data, let reserved):
            batch.reserved += reserved
            // The body was given up in the meantime: nothing more of it is written.
            guard receiving.contains(body) else {
                return data.isDropped.store(true, ordering: .releasing)
            }
            if hasRoom {
                try connection.insert(chunk: index, of: body, data: data.bytes)
                batch.chunks.append(data)
            } else {
                try drop(body, connection)
                abandoned.insert(body)
                data.isDropped.store(true, ordering: .releasing)
            }
        case .dropBody(let body): try drop(body, connection)
        case .remove(let removals):
            for removal in removals { batch.changedPages += try remove(removal, connection) }
        case .purge(let lastID):
            try connection.removeAllEntries()
            try connection.insert(garbage: 0...lastID)
            collect(0...lastID)
            abandoned = abandoned.filter { $0 > lastID }
        case .trust(let policy, let text): try connection.insert(trust: policy, text)
        case .barrier(let completion):
            batch.barriers.append(completion)
        case .fault(let error):
            throw error
        }
    }

    /// Releases what is held by operations that will not be carried out.
    func discard(_ operations: some Sequence<DiskOperation>) {
        for operation in operations {
            switch operation {
            case .row(_, _, let reserved), .chunk(_, _, _, let reserved):
                tier.budget.release(reserved)
            case .barrier(let completion): completion()
            case .beginBody, .dropBody, .remove, .purge, .trust, .fault: break
            }
        }
    }

    /// Called when the database was closed, and what is known about the rows is void.
    func forget() {
        garbage = []
        receiving = []
        abandoned = []
    }

    // MARK: Out

    /// Removes some rows that are no longer visible and that nobody is reading; `false` if there
    /// are none.
    func removeGarbage(_ connection: some WritableRows) throws(DatabaseError) -> Bool {
        guard let first = garbage.firstIndex(where: { !tier.index.isPinned($0) }) else {
            return false
        }
        if try !connection.removeSome(of: garbage[first]) { garbage.remove(at: first) }
        return true
    }

    /// Removes an entry's rows. Returns the approximate number of pages that this changed: a row
    /// next to the last one is on pages that have changed already.
    func remove(_ removal: Removal, _ connection: some WritableRows) throws(DatabaseError) -> Int {
        try connection.remove(entry: removal.id)
        let isBeside = abs(removal.id - lastRemoved) <= 8
        lastRemoved = removal.id
        switch removal.body {
        case .none: return isBeside ? 1 : 4
        case .drop(let body): try drop(body, connection)
        // Its chunks stay until the last reader has finished, or until the next start at the
        // latest.
        case .hold(let body): try connection.insert(incomplete: body)
        }
        return 8
    }

    /// Called if there is no space for a response, and none can be made: what fills the disk is
    /// being read, or has not been written yet.
    private func refuse(
        _ response: CachedResponse, _ connection: some WritableRows
    ) throws(DatabaseError) {
        tier.counters.noRoom.wrappingAdd(1, ordering: .relaxed)
        if let removal = tier.index.remove(response.token) {
            _ = try remove(removal, connection)
        } else {
            try keepTrack(of: response, connection)
        }
    }

    /// Handles a response that is not written and whose chunks belong to a row that it has just
    /// superseded: no row refers to them until the removal or successor that made it obsolete is
    /// carried out. If the database fails before that, the next start removes them.
    private func keepTrack(
        of response: CachedResponse, _ connection: some WritableRows
    ) throws(DatabaseError) {
        guard case .disk(let body) = response.body, body.id != response.token.id else { return }
        try connection.insert(incomplete: body.id)
    }

    /// Whether there was no space for all of the body. A 304 may have arrived before its first row
    /// was refused: then the next row refers to it, too.
    private func isAbandoned(_ response: CachedResponse) -> Bool {
        guard case .disk(let body) = response.body else { return false }
        return abandoned.contains(body.id)
    }

    private func drop(_ body: Int64, _ connection: some WritableRows) throws(DatabaseError) {
        receiving.remove(body)
        abandoned.remove(body)
        try connection.complete(body: body)
        // A large body is removed gradually, between other work.
        if try connection.removeChunks(of: body...body) { return }
        try connection.insert(garbage: body...body)
        collect(body...body)
    }

    /// Records a range to be removed gradually, once.
    private func collect(_ range: ClosedRange<Int64>) {
        garbage.removeAll { $0.lowerBound == range.lowerBound }
        garbage.append(range)
    }

    // MARK: In

    /// Writes a response's rows, unless it was replaced or invalidated since it was queued.
    private func write(
        _ response: CachedResponse, _ connection: some WritableRows
    ) throws(DatabaseError) -> Bool {
        let token = response.token
        guard let entry = tier.index.row(token) else {
            try keepTrack(of: response, connection)
            return false
        }
        // It may have been queued before it was purged.
        var facts = RowFacts(response, seed: tier.index.seed)
        switch verdict(response) {
        case .none: break
        case .gone:
            guard let removal = tier.index.remove(token) else { return false }
            _ = try remove(removal, connection)
            return false
        case .stale(_, let since): facts.makeStale(since: since)
        }
        if facts.staleSince > 0 { tier.index.setStale(token) }
        if case .disk(let disk) = response.body { receiving.remove(disk.id) }
        var bodyID: Int64 = 0
        var inline = UnsafeRawBufferPointer(start: nil, count: 0)
        switch response.body {
        case .contiguous, .parts: inline = response.ownBytes
        case .heap(let heap): inline = heap.bytes
        case .file, .arriving: break
        case .disk(let disk):
            bodyID = disk.id
            try connection.complete(body: bodyID)
        }
        if bodyID == 0, response.bodyCount > UInt64(options.inlineBodyBytes) {
            bodyID = token.id
            try writeChunks(of: response, connection)
            inline = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        try writeContent(response, bodyID: bodyID, inline: inline, connection)
        try connection.insert(entry, varyNames: response.varyKey.names, body: bodyID, facts)
        return true
    }

    private func verdict(_ response: CachedResponse) -> BanVerdict {
        tier.bans.verdict(key: response.key, head: response.head, .row(response.token.id))
    }

    private func writeContent(
        _ response: CachedResponse, bodyID: Int64, inline: UnsafeRawBufferPointer,
        _ connection: some WritableRows
    ) throws(DatabaseError) {
        let vary = response.varyKey.bytes
        let record = EntryRecord(
            keyCount: response.key.count, varyCount: vary.count, headCount: response.head.count,
            times: response.metadata.times, policy: response.policy,
            bodyCount: response.bodyCount, bodyID: bodyID, chunkBytes: chunkBytes(response))
        let recordBytes = EntryRecord.headerBytes + record.textCount
        var fileBytes = 0
        if case .file(let file) = response.body, bodyID == 0 { fileBytes = file.count }
        let memory = scratch.bytes(recordBytes + fileBytes)
        record.encode(to: memory)
        var offset = EntryRecord.headerBytes
        func append(_ bytes: UnsafeRawBufferPointer) {
            UnsafeMutableRawBufferPointer(rebasing: memory[offset..<offset + bytes.count])
                .copyMemory(from: bytes)
            offset += bytes.count
        }
        append(response.key)
        vary.withUnsafeBytes { append($0) }
        append(response.head)
        var body = inline
        if case .file(let file) = response.body, bodyID == 0 {
            let target = UnsafeMutableRawBufferPointer(rebasing: memory[recordBytes...])
            guard file.read(into: target, at: 0) else {
                throw DatabaseError(code: SQLITE_NOMEM, message: "a memory file is not readable")
            }
            body = UnsafeRawBufferPointer(target)
        }
        try connection.insert(
            content: response.token.id,
            record: UnsafeRawBufferPointer(rebasing: memory[..<recordBytes]), body: body)
    }

    private func chunkBytes(_ response: CachedResponse) -> Int {
        if case .disk(let disk) = response.body { return disk.chunkBytes }
        return response.chunkBytes
    }

    /// Writes the chunks of a body that is in memory.
    private func writeChunks(
        of response: CachedResponse, _ connection: some WritableRows
    ) throws(DatabaseError) {
        let total = Int(response.bodyCount)
        var offset = 0
        var index = 0
        while offset < total {
            let count = min(response.chunkBytes, total - offset)
            let data: UnsafeRawBufferPointer
            switch response.body {
            case .file(let file):
                let target = scratch.bytes(count)
                guard file.read(into: target, at: offset) else {
                    throw DatabaseError(
                        code: SQLITE_NOMEM, message: "a memory file is not readable")
                }
                data = UnsafeRawBufferPointer(target)
            case .heap(let heap):
                data = UnsafeRawBufferPointer(rebasing: heap.bytes[offset..<offset + count])
            case .contiguous(let body):
                data = UnsafeRawBufferPointer(rebasing: body.bytes[offset..<offset + count])
            case .disk, .arriving, .parts: return
            }
            try connection.insert(chunk: index, of: response.token.id, data: data)
            offset += count
            index += 1
        }
    }
}
