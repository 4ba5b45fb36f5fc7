import CSQLite

/// The facts of a narrow row (`entry`), from which the index is read.
///
/// Offsets and widths, all little-endian:
///
///     0  u64 hash of the key          12 u32 bytes on disk / `IndexSlot.unitBytes`
///     8  u32 hash of the Vary key     16 ... names that its Vary nominates
enum IndexRow {
    fileprivate static let fixedBytes = 16

    static func facts(_ entry: IndexSlot, varyNames: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: fixedBytes + varyNames.count) { target, count in
            let bytes = UnsafeMutableRawBufferPointer(target)
            bytes.storeBytes(of: entry.keyHash.littleEndian, as: UInt64.self)
            bytes.storeBytes(of: entry.varyHash.littleEndian, toByteOffset: 8, as: UInt32.self)
            bytes.storeBytes(of: entry.units.littleEndian, toByteOffset: 12, as: UInt32.self)
            UnsafeMutableRawBufferPointer(rebasing: bytes[fixedBytes...]).copyBytes(from: varyNames)
            count = fixedBytes + varyNames.count
        }
    }
}

/// Reads the narrow rows into an index.
///
/// SQLite calls it for each row, as an aggregate function; to step through the rows of a statement
/// takes twice as long, and a start among millions of them waits for this.
final class IndexReader {
    private(set) var table = IndexTable()
    /// Entry id to body id, where they differ.
    private(set) var bodies = SplitMap<Int64>()

    /// Reads all rows of `entry`, in the order of their ids.
    /// - Throws: `SQLITE_CORRUPT` if a row is not what was written.
    func read(_ database: Database) throws(DatabaseError) {
        table = IndexTable(expecting: Int(try database.integer("SELECT count(*) FROM entry") ?? 0))
        let context = Unmanaged.passUnretained(self).toOpaque()
        let sql = "SELECT read_entry(id, accessed, body, facts, stale) FROM entry"
        try withExtendedLifetime(self) { () throws(DatabaseError) in
            try database.aggregate("read_entry", of: 5, context) { context, _, values in
                guard let values, let reader = sqlite3_user_data(context) else { return }
                let isIntact = Unmanaged<IndexReader>.fromOpaque(reader)._withUnsafeGuaranteedRef {
                    $0.add(values)
                }
                if !isIntact { sqlite3_result_error_code(context, SQLITE_CORRUPT) }
            }
            defer { database.removeAggregate("read_entry", of: 5) }
            _ = try database.integer(sql)
        }
        table.orderByAge()
    }

    /// Returns `false` if the row is not what was written.
    private func add(_ values: UnsafeMutablePointer<OpaquePointer?>) -> Bool {
        let id = sqlite3_value_int64(values[0])
        let body = sqlite3_value_int64(values[2])
        let base = sqlite3_value_blob(values[3])
        let facts = UnsafeRawBufferPointer(
            start: base, count: base == nil ? 0 : Int(sqlite3_value_bytes(values[3])))
        guard facts.count >= IndexRow.fixedBytes, (1...IndexSlot.largestID).contains(id),
            (0...IndexSlot.largestID).contains(body)
        else { return false }
        var entry = IndexSlot()
        entry.id = id
        entry.keyHash = UInt64(littleEndian: facts.loadUnaligned(as: UInt64.self))
        entry.varyHash = UInt32(
            littleEndian: facts.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
        entry.units = UInt32(
            littleEndian: facts.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
        entry.accessed = UInt32(clamping: sqlite3_value_int64(values[1]))
        entry.isStale = sqlite3_value_int64(values[4]) != 0
        entry.flags = body > 0 ? [.committed, .chunked] : .committed
        if body > 0, body != id { bodies[id] = body }
        table.insertUnordered(
            entry, varyNames: UnsafeRawBufferPointer(rebasing: facts[IndexRow.fixedBytes...]))
        return true
    }

    /// What was read; it is then empty.
    func take() -> (IndexTable, SplitMap<Int64>) {
        var (taken, others) = (IndexTable(), SplitMap<Int64>())
        swap(&taken, &table)
        swap(&others, &bodies)
        return (taken, others)
    }
}
