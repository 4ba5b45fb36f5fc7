import CSQLite
import Clocks

/// Runs transactions, and keeps the write-ahead log short.
extension DiskWriter {
    /// Whether a batch may be written: the files are there, and the log has space.
    ///
    /// A log that a reader keeps from being copied must not grow without limit: writes then wait in
    /// the queue, and are refused when it is full.
    func isWritable(_ operations: ArraySlice<DiskOperation>) -> Bool {
        guard filesExist() else { return false }
        do throws(DatabaseError) {
            var tries = 5
            while let connection, connection.logBytes >= Int64(options.checkpointBytes) {
                if try restartLog(truncating: false) { break }
                if connection.logBytes < Int64(options.checkpointBytes) * 3 / 2 { break }
                tries -= 1
                guard tries > 0 else {
                    throw DatabaseError(code: SQLITE_BUSY, message: "a reader keeps the log")
                }
            }
        } catch {
            fail(error, operations)
        }
        return connection != nil
    }

    /// Runs `body` in a transaction. Does nothing without a database.
    func transaction(
        _ body: (WriterConnection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard let connection else { return }
        try connection.beginTransaction()
        try body(connection)
        try connection.commitTransaction()
    }

    /// The log's space is returned when nothing has been written for this long, in nanoseconds.
    private static let truncateAfterIdle: Int64 = 1_000_000_000

    /// Restarts the log when it is due, and checks how large the files have become.
    func afterCommit() throws(DatabaseError) {
        guard let connection else { return }
        damages = 0
        if connection.logBytes != logBytes {
            logBytes = connection.logBytes
            logFileBytes = max(logFileBytes, logBytes)
            watch.logHolds(logBytes)
            truncateAt = Clock.monotonicNanoseconds() + Self.truncateAfterIdle
        }
        // Whatever was committed has been copied.
        if logBytes == 0, tier.bans.waitsForCheckpoint {
            tier.bans.checkpointed()
            retireBans()
        }
        if connection.logBytes >= Int64(options.checkpointBytes) {
            try restartLog(truncating: false)
        } else {
            measure()
        }
    }

    /// Copies the log into the database and restarts it; `false` if a reader is still using it.
    @discardableResult
    func restartLog(truncating: Bool) throws(DatabaseError) -> Bool {
        guard let connection else { return false }
        let isDone = try connection.restartLog(truncating: truncating)
        if isDone {
            logBytes = 0
            tier.bans.checkpointed()
            retireBans()
        }
        if truncating {
            if isDone { logFileBytes = 0 }
            truncateAt = Clock.monotonicNanoseconds() + Self.truncateAfterIdle
        }
        measure()
        watch.remember()
        return isDone
    }

    func measure() {
        guard let connection, let pages = try? connection.pages() else { return }
        freePages = pages.free
        let bytes = pages.count * Int64(Schema.pageBytes)
        tier.counters.fileBytes.store(bytes + logFileBytes, ordering: .relaxed)
        tier.counters.logBytes.store(logFileBytes, ordering: .relaxed)
    }
}
