@testable import CacheStore

/// The rows of a simulated disk: what SQLite's tables hold, in memory, with checksums and
/// transactions, and reads that go wrong when the script says so.
final class ScriptedRows: ReadableRows, WritableRows, RowSource, @unchecked Sendable {
    struct Entry {
        let slot: IndexSlot
        let varyNames: [UInt8]
        let body: Int64
        let facts: RowFacts
    }

    struct Content {
        let sum: Int64
        let record: [UInt8]
        var body: [UInt8]
    }

    struct Chunk {
        let sum: Int64
        var data: [UInt8]
    }

    struct Tables {
        var entries: [Int64: Entry] = [:]
        var contents: [Int64: Content] = [:]
        var chunks: [Int64: Chunk] = [:]
        var incomplete: Set<Int64> = []
        var garbage: [Int64: Int64] = [:]
    }

    /// The result of reading a row.
    enum Fate: Equatable { case read, damaged, missing, busy, failed }

    var tables = Tables()
    private var saved: Tables?
    /// The database is open.
    var isOpen = false
    /// Called before each read.
    var drawFate: () -> Fate = { .read }
    /// A row was missing, or was written twice.
    private(set) var violation: String?

    /// SQLITE_BUSY, SQLITE_IOERR.
    static let busy = DatabaseError(code: 5, message: "busy")
    static let failure = DatabaseError(code: 10, message: "disk I/O error")

    // MARK: Transactions

    func begin() { saved = tables }

    func commit() { saved = nil }

    func rollback() {
        if let saved { tables = saved }
        saved = nil
    }

    /// The largest id that any row has.
    var lastID: Int64 {
        let chunk = tables.chunks.keys.max().map { $0 >> Schema.chunkBits }
        let ids = [
            tables.entries.keys.max(), tables.contents.keys.max(), tables.garbage.values.max(),
            chunk,
        ]
        return ids.compactMap { $0 }.max() ?? 0
    }

    // MARK: Reading

    func withRows<Result: Sendable>(
        of tier: DiskTier, _ body: (ScriptedRows) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result? {
        guard isOpen else { return nil }
        return try body(self)
    }

    func close() {}

    func insert(trust policy: UInt64, _ text: String) {}

    func staleSince(_ id: Int64) throws(DatabaseError) -> Int64 {
        tables.entries[id]?.facts.staleSince ?? 0
    }

    private func meetFate<Result>() throws(DatabaseError) -> CheckedRow<Result>? {
        switch drawFate() {
        case .read: return nil
        case .damaged: return .damaged
        case .missing: return .missing
        case .busy: throw Self.busy
        case .failed: throw Self.failure
        }
    }

    func content<Result: Sendable>(
        _ id: Int64, _ use: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result> {
        if let fate: CheckedRow<Result> = try meetFate() { return fate }
        guard let row = tables.contents[id] else { return .missing }
        return row.record.withUnsafeBytes { record in
            row.body.withUnsafeBytes { body in
                EntryRecord.sum(id: id, record: record, body: body) == row.sum
                    ? .intact(use(record, body)) : .damaged
            }
        }
    }

    func chunk<Result: Sendable>(
        body: Int64, index: Int, count: Int, _ use: (UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result> {
        if let fate: CheckedRow<Result> = try meetFate() { return fate }
        let id = EntryRecord.chunkID(body: body, index: index)
        guard let row = tables.chunks[id] else { return .missing }
        return row.data.withUnsafeBytes { data in
            data.count == count && EntryRecord.sum(chunk: id, data: data) == row.sum
                ? .intact(use(data)) : .damaged
        }
    }

    // MARK: Writing

    private func check(_ isNew: Bool, _ what: String) {
        if !isNew, violation == nil { violation = "\(what) is written twice" }
    }

    func insert(_ entry: IndexSlot, varyNames: [UInt8], body: Int64, _ facts: RowFacts) {
        check(tables.entries[entry.id] == nil, "entry \(entry.id)")
        tables.entries[entry.id] = Entry(
            slot: entry, varyNames: varyNames, body: body, facts: facts)
    }

    func insert(content id: Int64, record: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer) {
        check(tables.contents[id] == nil, "content \(id)")
        tables.contents[id] = Content(
            sum: EntryRecord.sum(id: id, record: record, body: body), record: Array(record),
            body: Array(body))
    }

    func insert(chunk index: Int, of body: Int64, data: UnsafeRawBufferPointer) {
        let id = EntryRecord.chunkID(body: body, index: index)
        check(tables.chunks[id] == nil, "chunk \(index) of \(body)")
        tables.chunks[id] = Chunk(sum: EntryRecord.sum(chunk: id, data: data), data: Array(data))
    }

    func insert(incomplete body: Int64) { tables.incomplete.insert(body) }

    func complete(body: Int64) { tables.incomplete.remove(body) }

    func insert(garbage range: ClosedRange<Int64>) {
        tables.garbage[range.lowerBound] = range.upperBound
    }

    func remove(entry id: Int64) {
        tables.entries[id] = nil
        tables.contents[id] = nil
    }

    func removeAllEntries() { tables.entries = [:] }

    /// A few at a time, so that there is garbage.
    private static let chunksAtATime = 3

    func removeChunks(of bodies: ClosedRange<Int64>) -> Bool {
        let all = chunkIDs(of: bodies)
        for id in all.prefix(Self.chunksAtATime) { tables.chunks[id] = nil }
        return all.count < Self.chunksAtATime
    }

    func removeSome(of range: ClosedRange<Int64>) -> Bool {
        let contents = tables.contents.keys.filter { range.contains($0) }
        for id in contents { tables.contents[id] = nil }
        if !contents.isEmpty || !removeChunks(of: range) { return true }
        tables.garbage[range.lowerBound] = nil
        return false
    }

    private func chunkIDs(of bodies: ClosedRange<Int64>) -> [Int64] {
        tables.chunks.keys.filter { bodies.contains($0 >> Schema.chunkBits) }.sorted()
    }
}
