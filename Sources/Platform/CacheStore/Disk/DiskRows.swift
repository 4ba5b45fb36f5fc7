// The boundary between the disk tier and its rows: SQLite's, or those of a test.

/// What a reader reads rows with: a connection, or a test's replacement for one.
protocol ReadableRows: Sendable {
    /// Calls `use` with a response's record and body, after verifying their checksum.
    func content<Result: Sendable>(
        _ id: Int64,
        _ use: (_ record: UnsafeRawBufferPointer, _ body: UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result>

    /// Since when a row's response has been stale because of a soft purge; 0 if it is not, or there
    /// is no such row.
    func staleSince(_ id: Int64) throws(DatabaseError) -> Int64

    /// The same for a chunk's data, which must have `count` bytes.
    func chunk<Result: Sendable>(
        body: Int64, index: Int, count: Int, _ use: (UnsafeRawBufferPointer) -> Result
    ) throws(DatabaseError) -> CheckedRow<Result>
}

/// The result of using a row, or why there is none.
enum CheckedRow<Result: Sendable>: Sendable {
    case intact(Result)
    /// There is no such row.
    case missing
    case damaged
}

/// Where a reader gets its rows from.
protocol RowSource: Sendable {
    associatedtype Rows: ReadableRows

    /// Runs `body` with the rows; `nil` if the tier is off.
    func withRows<Result: Sendable>(
        of tier: DiskTier, _ body: (Rows) throws(DatabaseError) -> Result
    ) throws(DatabaseError) -> Result?

    /// Ends reading.
    func close()
}

/// Where a writer inserts rows, within a transaction, and removes them.
protocol WritableRows {
    func insert(
        _ entry: IndexSlot, varyNames: [UInt8], body: Int64, _ facts: RowFacts
    ) throws(DatabaseError)
    func insert(content id: Int64, record: UnsafeRawBufferPointer, body: UnsafeRawBufferPointer)
        throws(DatabaseError)
    func insert(chunk index: Int, of body: Int64, data: UnsafeRawBufferPointer)
        throws(DatabaseError)
    /// The body's chunks will be removed at the next start, unless `complete` is called before.
    func insert(incomplete body: Int64) throws(DatabaseError)
    func complete(body: Int64) throws(DatabaseError)
    /// Records that content and chunks with these ids are to be removed.
    func insert(garbage range: ClosedRange<Int64>) throws(DatabaseError)
    /// What the fingerprint of a policy means.
    func insert(trust policy: UInt64, _ text: String) throws(DatabaseError)
    func remove(entry id: Int64) throws(DatabaseError)
    func removeAllEntries() throws(DatabaseError)
    /// Removes some chunks of bodies; returns `true` if that was all of them.
    func removeChunks(of bodies: ClosedRange<Int64>) throws(DatabaseError) -> Bool
    /// Removes some of the rows in a range; returns `false` if none are left, and the record is
    /// gone.
    func removeSome(of range: ClosedRange<Int64>) throws(DatabaseError) -> Bool
}
