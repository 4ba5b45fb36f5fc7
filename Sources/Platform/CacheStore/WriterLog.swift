import CSQLite
import Clocks

/// Transactions, and keeping the write-ahead log short.
extension DiskWriter {
    /// Whether a batch may be written: the files are there, and the log has room.
    ///
    /// A log that a reader keeps from being copied must not grow without end: then what is to be
    /// stored waits in the queue, and is refused when that is full.
    func isWritable(_ operations: ArraySlice<DiskOperation>) -> Bool {
        guard filesAreThere() else { return false }
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

    /// Runs `body` in a transaction. Without a database it does nothing.
    func transaction(
        _ body: (WriterConnection) throws(DatabaseError) -> Void
    ) throws(DatabaseError) {
        guard let connection else { return }
        try connection.beginTransaction()
        try body(connection)
        try connection.commitTransaction()
    }

    /// The log's space is given back when nothing has been written for so long, in nanoseconds.
    private static let truncateAfterIdle: Int64 = 1_000_000_000

    /// Begins the log again when it is due, and looks how large the files have become.
    func afterCommit() throws(DatabaseError) {
        guard let connection else { return }
        damages = 0
        if connection.logBytes != logBytes {
            logBytes = connection.logBytes
            logFileBytes = max(logFileBytes, logBytes)
            watch.logHolds(logBytes)
            truncateAt = Clock.monotonicNanoseconds() + Self.truncateAfterIdle
        }
        if connection.logBytes >= Int64(options.checkpointBytes) {
            try restartLog(truncating: false)
        } else {
            measure()
        }
    }

    /// Copies the log into the database and begins it again; false: a reader is still in it.
    @discardableResult
    func restartLog(truncating: Bool) throws(DatabaseError) -> Bool {
        guard let connection else { return false }
        let isDone = try connection.restartLog(truncating: truncating)
        if isDone { logBytes = 0 }
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
