/// Keeps the database within its limits, by the pages that it really uses.
extension DiskWriter {
    /// The maximum number of pages that the database may use. A smaller database has space for
    /// little except its own tables.
    var limitPages: Int64 { max(options.diskBytes / Int64(Schema.pageBytes), 32) }

    /// The number of pages that may still be used.
    func room(_ connection: WriterConnection) throws(DatabaseError) -> Int64 {
        let pages = try connection.pages()
        return limitPages - (pages.count - pages.free)
    }

    var isOverLimit: Bool {
        guard let connection, let room = try? room(connection) else { return false }
        return room < 0 || shortage != nil
    }

    /// The limit that the entries exceed.
    private var shortage: WritableKeyPath<DiskEvictions, UInt64>? {
        let statistics = tier.index.statistics()
        if statistics.entries > options.diskEntries { return \.entries }
        return statistics.bytes > options.diskBytes ? \.bytes : nil
    }

    /// Removes what is no longer visible and then the least recently used entries until `pages`
    /// more may be used, or nothing is left to remove. Not within a transaction: it uses its own,
    /// each of about `batchPages` changed pages, at most `transactions` of them.
    ///
    /// If the removed entries are scattered over the file, many of them go before a page is empty.
    func makeRoom(pages needed: Int64, transactions: Int = .max) throws(DatabaseError) {
        var transactions = transactions
        var hasProgressed = true
        while hasProgressed, transactions > 0, let connection {
            hasProgressed = false
            transactions -= 1
            guard try room(connection) < needed || shortage != nil else { return }
            try transaction { connection throws(DatabaseError) in
                var changed = 0
                while changed < options.batchPages {
                    let isFull = try room(connection) < needed
                    if isFull, try rows.removeGarbage(connection) {
                        changed += WriterConnection.garbageContents
                        hasProgressed = true
                        continue
                    }
                    guard let counter = isFull ? \.bytes : shortage,
                        let removal = tier.index.evict(counter)
                    else { break }
                    changed += try rows.remove(removal, connection)
                    hasProgressed = true
                }
            }
            try afterCommit()
        }
    }
}

extension DiskOperation {
    /// Bytes of the pages it uses, including pages that are only partly filled.
    var pageBytes: Int {
        switch self {
        case .row(let response, _, _): response.rowBytes + response.rowBytes / 64
        case .chunk(_, _, let data, _): data.bytes.count + Schema.pageBytes
        default: 0
        }
    }

    /// Whether it removes rows that nothing else knows are to be removed.
    var removesRows: Bool {
        switch self {
        case .row(_, let superseded, _): !superseded.isEmpty
        case .remove(let removals): !removals.isEmpty
        case .purge: true
        case .beginBody, .chunk, .dropBody, .trust, .barrier, .fault: false
        }
    }
}

extension CachedResponse {
    /// Bytes of its rows, including those of a body that is written from memory.
    var rowBytes: Int {
        let text = EntryRecord.headerBytes + key.count + varyKey.bytes.count + head.count + 128
        return text + (isOnDiskOnly ? 0 : Int(clamping: bodyCount))
    }
}
