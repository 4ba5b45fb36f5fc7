import CSQLite
import Clocks

/// Carrying out what is queued.
extension DiskWriter {
    func perform(_ operations: [DiskOperation]) {
        var rest = operations[...]
        while !rest.isEmpty {
            guard isWritable(rest) else { return rows.discard(rest) }
            var batch = RowBatch()
            let begun = rest
            do throws(DatabaseError) {
                try makeRoom(pages: pages(rest))
                guard connection != nil else { continue }
                try transaction { connection throws(DatabaseError) in
                    while let operation = rest.first, !isFull(batch) {
                        let hasRoom = try self.hasRoom(for: operation, connection, &batch)
                        // More space is made, in a separate transaction, before the next batch.
                        guard hasRoom || batch.operations == 0 || isLate else { break }
                        rest.removeFirst()
                        batch.operations += 1
                        batch.bytes += operation.bytes
                        try rows.carryOut(operation, hasRoom: hasRoom, connection, &batch)
                    }
                }
                rows.finish(&batch)
                try afterCommit()
            } catch {
                fail(error, begun)
                rows.finish(&batch)
                return rows.discard(rest)
            }
        }
    }

    /// Whether the time is over within which responses are still written before the database is
    /// handed over. What is removed is removed nevertheless.
    private var isLate: Bool {
        let end = tier.storesUntil.load(ordering: .relaxed)
        return end != .max && Clock.monotonicNanoseconds() > end
    }

    private func isFull(_ batch: RowBatch) -> Bool {
        batch.operations >= options.batchOperations || batch.bytes >= options.batchBytes
            || batch.changedPages >= options.batchPages
    }

    /// The number of new pages needed by roughly one batch of operations.
    private func pages(_ operations: ArraySlice<DiskOperation>) -> Int64 {
        var bytes = 0
        for operation in operations.prefix(options.batchOperations) {
            bytes += operation.pageBytes
            if bytes >= options.batchBytes { break }
        }
        return bytes > 0 ? Int64(bytes / Schema.pageBytes) + Self.spare : 0
    }

    /// Pages that the tables need above their rows.
    private static let spare: Int64 = 8

    private func hasRoom(
        for operation: DiskOperation, _ connection: WriterConnection, _ batch: inout RowBatch
    ) throws(DatabaseError) -> Bool {
        let needed = operation.pageBytes
        guard needed > 0 else { return true }
        guard !isLate else { return false }
        let pages = Int64(needed / Schema.pageBytes) + 2
        // The remaining space is determined again when it may be too little after everything used
        // since.
        if batch.room < pages { batch.room = try room(connection) }
        guard batch.room >= pages else { return false }
        batch.room -= pages
        return true
    }
}
