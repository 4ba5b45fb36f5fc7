import CLinux
import CSQLite
import CachePolicy
import HTTPCore
import Locking

/// A reader's connection, closed from outside when the database is closed.
final class ReaderSlot: RowSource {
    let connection = Locked<ReaderConnection?>(nil)

    /// Opens the connection first if necessary.
    func withRows<Result: Sendable>(
        of tier: DiskTier, _ body: (ReaderConnection) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result? {
        try connection.withLock { connection throws(DatabaseError) -> Result? in
            if connection == nil, tier.mayOpenReader {
                connection = try ReaderConnection(of: tier)
            }
            guard let connection else { return nil }
            return try body(connection)
        }
    }

    func close() {
        connection.withLock { connection in
            connection?.close()
            connection = nil
        }
    }
}

/// A reading connection with its statements.
final class ReaderConnection: ReadableRows, @unchecked Sendable {
    let database: Database
    private var pageStatement: Statement?
    private var recordStatements: (facts: Statement, record: Statement)?
    private let content: Statement
    private let chunk: Statement
    private let stale: Statement
    private let counters: DiskCounters
    /// Reused for responses in two rows.
    private let scratch = RowScratch()

    init(of tier: DiskTier) throws(DatabaseError) {
        counters = tier.counters
        database = try Database(
            path: tier.options.databasePath, create: false,
            busyMilliseconds: tier.options.busyMilliseconds,
            isShared: tier.access != .exclusive)
        // No memory mapping: a read error of the device would then be a signal rather than a
        // result.
        try database.execute("PRAGMA cache_size=-1024; PRAGMA query_only=ON; PRAGMA mmap_size=0")
        content = try database.prepare(
            "SELECT sum, record, body FROM content WHERE id BETWEEN ? AND ?")
        chunk = try database.prepare("SELECT sum, data FROM chunk WHERE id = ?")
        stale = try database.prepare("SELECT stale FROM entry WHERE id = ?")
    }

    func close() { database.close() }

    /// See `rows`. Made when it is first used, like the others for lists.
    func page() throws(DatabaseError) -> Statement {
        if let pageStatement { return pageStatement }
        let made = try database.prepare(
            """
            SELECT entry.id, accessed, stale, hits, record FROM entry
            JOIN content ON content.id=entry.id*2 WHERE entry.id>? ORDER BY entry.id LIMIT ?
            """)
        pageStatement = made
        return made
    }

    /// See `visitRecords`.
    func records() throws(DatabaseError) -> (facts: Statement, record: Statement) {
        if let recordStatements { return recordStatements }
        let made = (
            facts: try database.prepare(
                "SELECT id, host, tags FROM entry WHERE id>? ORDER BY id LIMIT ?"),
            record: try database.prepare("SELECT record FROM content WHERE id=?")
        )
        recordStatements = made
        return made
    }

    func staleSince(_ id: Int64) throws(DatabaseError) -> Int64 {
        stale.bind(1, id)
        defer { stale.reset() }
        return try stale.step() ? stale.integer(0) : 0
    }

    /// The row remains locked in place while `use` runs. Of two rows, the bytes are copied.
    func content<Result: Sendable>(
        _ id: Int64,
        _ use: (_ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result> {
        let first = EntryRecord.contentID(id)
        content.bind(1, first)
        content.bind(2, first + 1)
        defer { content.reset() }
        guard try content.step() else { return .missing }
        let record = content.bytes(1)
        let body = content.bytes(2)
        counters.read(bytes: record.count + body.count)
        guard EntryRecord.sum(id: first, record: record, body: body) == content.integer(0) else {
            return .damaged
        }
        guard body.count < EntryRecord.inlineCount(record) else {
            return .intact(use(record, body))
        }
        return try joined(first + 1, record, body, use)
    }

    /// With the rest of a body, which is in the next row.
    private func joined<Result>(
        _ id: Int64, _ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer,
        _ use: (_ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result> {
        let start = record.count + body.count
        let total = EntryRecord.inlineCount(record)
        guard total <= UInt64(EntryRecord.maximumBytes + start) else { return .damaged }
        let whole = scratch.bytes(record.count + Int(total))
        whole.copyMemory(from: record)
        UnsafeMutableRawBufferPointer(rebasing: whole[record.count...]).copyMemory(from: body)
        let recordCount = record.count
        guard try content.step() else { return .damaged }
        let rest = content.bytes(2)
        counters.read(bytes: rest.count)
        guard rest.count == whole.count - start,
            EntryRecord.sum(id: id, record: content.bytes(1), body: rest) == content.integer(0)
        else { return .damaged }
        UnsafeMutableRawBufferPointer(rebasing: whole[start...]).copyMemory(from: rest)
        return .intact(
            use(
                UnsafeRawBufferPointer(rebasing: whole[..<recordCount]),
                UnsafeRawBufferPointer(rebasing: whole[recordCount...])))
    }

    func chunk<Result: Sendable>(
        body: Int64, index: Int, count: Int, _ use: (UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result> {
        let id = EntryRecord.chunkID(body: body, index: index)
        chunk.bind(1, id)
        defer { chunk.reset() }
        guard try chunk.step() else { return .missing }
        let data = chunk.bytes(1)
        counters.read(bytes: data.count)
        guard data.count == count, EntryRecord.sum(chunk: id, data: data) == chunk.integer(0) else {
            return .damaged
        }
        return .intact(use(data))
    }
}

/// A reader: performs loads and chunk reads. A dedicated thread runs it until the store is closed.
struct DiskReader<Source: RowSource> {
    private let tier: DiskTier
    private let source: Source

    init(_ tier: DiskTier, _ source: Source) {
        self.tier = tier
        self.source = source
    }

    func run() {
        tier.reads.serve(answer)
        source.close()
    }

    /// Performs a request, and calls its completion.
    func answer(_ request: ReadRequest) {
        switch request {
        case .load(let load, let hasWaited): answer(load, hasWaited: hasWaited)
        case .chunk(let body, let index, let completion):
            completion(chunk(body, index))
        }
    }

    /// Runs `body` with the rows; fails if the tier is off or the database fails.
    private func withRows<Value: Sendable>(
        _ body: (Source.Rows) throws(DatabaseError) -> Value
    ) -> Result<Value, CacheListingError> {
        do throws(DatabaseError) {
            if let value = try source.withRows(of: tier, body) { return .success(value) }
        } catch {
            tier.report(error)
            return .failure(.readFailed(detail: error.message))
        }
        return .failure(tier.absence)
    }

    // MARK: Loads

    private func answer(_ load: LevelLoad, hasWaited: Bool) {
        // What is read from here on is compared with these bans, and with later ones when it is
        // kept.
        let born = tier.bans.settled
        let candidates = load.key.withUnsafeBytes {
            tier.index.candidates(
                $0, load.variants, now: load.look == nil ? LastUse.now() : nil)
        }
        var found: [CachedResponse] = []
        var isBeingWritten = false
        for candidate in candidates {
            if case .beingWritten = candidate.place { isBeingWritten = true }
            guard let response = response(candidate, load),
                let allowed = allowed(response, candidate, born, load),
                let current = promote(allowed, load)
            else { continue }
            found.append(current)
        }
        let lacksSome = found.isEmpty || load.look != nil
        if lacksSome, isBeingWritten, !hasWaited, waitForWriter(load) { return }
        if load.look == nil { tier.counters.loaded(isHit: !found.isEmpty) }
        load.completion(found.isEmpty ? .nothing : .found(found))
    }

    /// What the bans leave of a loaded response; `nil` if it was purged.
    private func allowed(
        _ response: CachedResponse, _ candidate: IndexCandidate, _ born: UInt64, _ load: LevelLoad
    ) -> CachedResponse? {
        let token = candidate.token
        // One that waits for the writer is known to others.
        if case .committed = candidate.place { response.born = born }
        switch tier.bans.verdict(key: response.key, head: response.head, .row(token.id)) {
        case .none:
            guard response.staleSince == 0, tier.index.isStale(token) else { return response }
            return stale(response, since: staleSince(token, load), born)
        case .gone: return nil
        case .stale(_, let since): return stale(response, since: since, born)
        }
    }

    private func stale(
        _ response: CachedResponse, since time: Int64, _ born: UInt64
    ) -> CachedResponse? {
        let stale = response.stale(since: time)
        stale?.born = born
        return stale
    }

    /// If it is not known since when, it is from the beginning.
    private func staleSince(_ token: IndexToken, _ load: LevelLoad) -> Int64 {
        switch withRows({ rows throws(DatabaseError) in try rows.staleSince(token.id) }) {
        case .success(let time): return max(1, time)
        case .failure(let error):
            load.look?.fail(error)
            return 1
        }
    }

    /// Makes a loaded entry available in memory; `nil` if it was replaced or invalidated while it
    /// was being read.
    private func promote(_ response: CachedResponse, _ load: LevelLoad) -> CachedResponse? {
        load.publish(response, isNear: true) { [index = tier.index] isInMemory in
            // It may have been made stale since it was compared with the bans.
            index.holds(response) && index.promote(response.token, resident: isInMemory)
        }
    }

    /// Performs a load again once what is queued has been written. Returns `false` if it cannot
    /// wait.
    private func waitForWriter(_ load: LevelLoad) -> Bool {
        let request = ReadRequest.load(load, hasWaited: true)
        return tier.queue.append(
            .barrier { [tier] in if !tier.reads.append(request) { request.giveUp() } })
    }

    private func response(_ candidate: IndexCandidate, _ load: LevelLoad) -> CachedResponse? {
        switch candidate.place {
        case .waiting(let response):
            return load.key.withUnsafeBytes { response.isOf(load.hash, $0) } ? response : nil
        case .beingWritten:
            return nil
        case .committed(let body):
            guard body > 0 else { return read(candidate.token, body: 0, load) }
            // The pin lasts while the row is read; the result takes its own pin.
            let pinned = tier.body(id: body, count: 0, chunkBytes: tier.options.chunkBytes)
            return withExtendedLifetime(pinned) { read(candidate.token, body: body, load) }
        }
    }

    private func read(_ token: IndexToken, body: Int64, _ load: LevelLoad) -> CachedResponse? {
        let loaded = withRows { rows throws(DatabaseError) in
            try rows.content(token.id) { record, inline in
                build(record, inline, token, body: body, load)
            }
        }
        switch loaded {
        case .failure(let error):
            load.look?.fail(error)
            return nil
        case .success(.missing), .success(.intact(.notTaken)): return nil
        case .success(.intact(.noMemory)):
            load.look?.fail(.noMemory)
            return nil
        case .success(.damaged), .success(.intact(.unusable)):
            drop(token)
            return nil
        case .success(.intact(.complete(let response))):
            return response
        case .success(.intact(.chunked(let unfinished))):
            return finish(unfinished, token, load)
        }
    }

    /// Drops a damaged entry.
    private func drop(_ token: IndexToken) {
        guard tier.index.phase == .ready, let removal = tier.index.remove(token) else { return }
        tier.remove([removal])
        tier.counters.damaged.wrappingAdd(1, ordering: .relaxed)
        tier.onEvent(.damagedEntry(id: token.id))
    }

    /// What a row turned out to be.
    private enum Built: Sendable {
        case complete(CachedResponse)
        /// The head; the body is in chunks.
        case chunked(Unfinished)
        /// Another key with the same hash.
        case notTaken
        case noMemory
        case unusable
    }

    /// A response whose chunks are still to be read.
    private struct Unfinished: Sendable {
        let head: [UInt8]
        let vary: VaryKey
        let metadata: StoredMetadata
        let record: EntryRecord
    }

    private func build(
        _ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer, _ token: IndexToken,
        body bodyID: Int64, _ load: LevelLoad
    ) -> Built {
        let key = load.key
        guard let fields = EntryRecord(record, inlineBytes: body.count),
            fields.bodyID == bodyID
        else { return .unusable }
        let text = EntryRecord.headerBytes
        let keyBytes = UnsafeRawBufferPointer(rebasing: record[text..<text + fields.keyCount])
        guard keyBytes.elementsEqual(key) else { return .notTaken }
        let varyStart = text + fields.keyCount
        let headStart = varyStart + fields.varyCount
        let head = UnsafeRawBufferPointer(rebasing: record[headStart...])
        guard let vary = VaryKey(bytes: [UInt8](record[varyStart..<headStart])),
            let metadata = StoredMetadata(
                storedHead: head.bindMemory(to: UInt8.self).span, times: fields.times,
                hasQuery: key.contains(UInt8(ascii: "?")), options: load.policy)
        else { return .unusable }
        if fields.bodyID > 0 {
            return .chunked(
                Unfinished(
                    head: [UInt8](head), vary: vary, metadata: metadata, record: fields))
        }
        let found = LoadedHead(vary: vary, metadata: metadata, policy: fields.policy, head: head)
        guard let response = load.memory.makeResponse(found, for: load, body: body) else {
            return .noMemory
        }
        response.token = token
        return .complete(response)
    }

    /// Reads the chunks of a body that is read in one piece, or makes it a `.disk` body: always if
    /// somebody only looks.
    private func finish(
        _ unfinished: Unfinished, _ token: IndexToken, _ load: LevelLoad
    ) -> CachedResponse? {
        let record = unfinished.record
        let storage: BodyStorage
        if load.look != nil || record.bodyCount > UInt64(tier.options.wholeBodyBytes) {
            guard tier.index.pin(record.bodyID) else {
                load.look?.fail(.handedOver)
                return nil
            }
            storage = .disk(
                tier.body(
                    id: record.bodyID, count: record.bodyCount, chunkBytes: record.chunkBytes))
        } else {
            guard let whole = wholeBody(record, token, load) else { return nil }
            storage = whole
        }
        let response = unfinished.head.withUnsafeBytes { head in
            load.memory.makeResponse(
                LoadedHead(
                    vary: unfinished.vary, metadata: unfinished.metadata, policy: record.policy,
                    head: head),
                for: load, storage: storage, chunkBytes: record.chunkBytes)
        }
        if response == nil { load.look?.fail(.noMemory) }
        response?.token = token
        return response
    }

    private func wholeBody(
        _ record: EntryRecord, _ token: IndexToken, _ load: LevelLoad
    ) -> BodyStorage? {
        let body = LargeBody(load.memory.files, load.memory.heap)
        var left = Int(record.bodyCount)
        for index in 0..<record.chunkCount {
            let count = min(left, record.chunkBytes)
            let read = withRows { rows throws(DatabaseError) in
                try rows.chunk(body: record.bodyID, index: index, count: count) {
                    body.append($0)
                }
            }
            switch read {
            case .success(.intact(true)): left -= count
            case .success(.intact(false)), .failure: return nil
            case .success(.damaged), .success(.missing):
                drop(token)
                return nil
            }
        }
        return body.complete()
    }

    // MARK: Chunks

    private func chunk(_ body: LevelBody, _ index: Int) -> ChunkResult {
        let count = body.expectedCount(index)
        guard count > 0, let bytes = ChunkBytes(capacity: count) else { return .gone }
        let read = withRows { rows throws(DatabaseError) in
            try rows.chunk(body: body.id, index: index, count: count) {
                _ = bytes.append($0)
            }
        }
        switch read {
        case .success(.intact): return .chunk(bytes)
        case .failure(let error): return .failed(error)
        case .success(.missing):
            // If its entry is still there, it is not intact.
            tier.dropDamaged(body: body.id)
            return .gone
        case .success(.damaged):
            tier.dropDamaged(body: body.id)
            return .damaged
        }
    }
}
