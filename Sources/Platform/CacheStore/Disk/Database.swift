import CSQLite

/// A failed SQLite call: the extended result code and SQLite's message.
struct DatabaseError: Error, Equatable {
    let code: Int32
    let message: String

    /// The result code without its extension.
    var primary: Int32 { code & 0xff }

    /// Whether the file's content is not what SQLite or this store wrote.
    var isDamage: Bool { primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB }

    /// What the fault means for the disk tier.
    var reason: DiskOffReason {
        switch primary {
        case SQLITE_FULL: .full
        case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .locked
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_AUTH: .readOnly
        case SQLITE_CANTOPEN: .folder
        case SQLITE_IOERR: .inputOutput
        case SQLITE_CORRUPT, SQLITE_NOTADB: .corrupt
        default: .other
        }
    }
}

/// One SQLite connection, used by one thread at a time.
///
/// Connections are opened through SQLite's VFS "unix-excl": the first keeps other processes out of
/// the file, and all connections of this process share a WAL index in the heap. With the default
/// VFS that index is a mapped file, `cache.sqlite-shm`, and if somebody truncates it the process
/// dies of SIGBUS; it is used only while the database passes from one process to another. Nothing
/// else is mapped either (`mmap_size` is 0): a truncated file or a failing device is then a read
/// error.
final class Database: @unchecked Sendable {
    private let handle: OpaquePointer
    private var statements: [Statement] = []
    /// Frames in the write-ahead log after this connection's last commit.
    private let frames: UnsafeMutablePointer<Int32>

    /// Opens `path`, creating the file if `create`. Waits up to `busyMilliseconds` for locks held
    /// by other connections.
    /// - Parameter isShared: whether other processes may use it at the same time. All connections
    ///   of a process must agree on it.
    init(
        path: String, create: Bool, busyMilliseconds: Int, isShared: Bool = false
    ) throws(DatabaseError) {
        var opened: OpaquePointer?
        // Each connection is used by one thread at a time, so SQLite's own locking is not needed.
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0)
        let status = sqlite3_open_v2(path, &opened, flags, isShared ? "unix" : "unix-excl")
        guard status == SQLITE_OK, let opened else {
            let error = DatabaseError(
                code: status, message: String(cString: sqlite3_errstr(status)))
            sqlite3_close_v2(opened)
            throw error
        }
        handle = opened
        // Not earlier: a failed initializer does not run deinit.
        frames = .allocate(capacity: 1)
        frames.initialize(to: 0)
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, Int32(clamping: busyMilliseconds))
    }

    deinit {
        close()
        frames.deallocate()
    }

    private var isOpen = true

    /// Makes every commit record the length of the log (`logFrames`). This replaces SQLite's
    /// automatic checkpoints.
    func watchLog() {
        sqlite3_wal_hook(
            handle,
            { context, _, _, frames in
                context?.assumingMemoryBound(to: Int32.self).pointee = frames
                return SQLITE_OK
            }, frames)
    }

    /// Frames in the write-ahead log, including those already copied. See `watchLog`.
    var logFrames: Int { Int(frames.pointee) }

    /// Finalizes all statements and closes the connection. Safe to call again.
    func close() {
        guard isOpen else { return }
        isOpen = false
        for statement in statements { statement.finalize() }
        statements = []
        sqlite3_close_v2(handle)
    }

    /// Runs statements whose results are not needed.
    func execute(_ sql: String) throws(DatabaseError) {
        let status = sqlite3_exec(handle, sql, nil, nil, nil)
        guard status == SQLITE_OK else { throw lastError(status) }
    }

    /// Prepares a statement for repeated use; the connection owns it.
    func prepare(_ sql: String) throws(DatabaseError) -> Statement {
        var compiled: OpaquePointer?
        let status = sqlite3_prepare_v3(
            handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &compiled, nil)
        guard status == SQLITE_OK, let compiled else { throw lastError(status) }
        let statement = Statement(compiled, self)
        statements.append(statement)
        return statement
    }

    /// The first column of the first row as an integer; `nil` without a row.
    func integer(_ sql: String) throws(DatabaseError) -> Int64? {
        try first(sql) { $0.integer(0) }
    }

    /// The first column of the first row as text; `nil` without a row.
    func text(_ sql: String) throws(DatabaseError) -> String? {
        try first(sql) { $0.text(0) }
    }

    private func first<Value>(
        _ sql: String, _ read: (Statement) -> Value
    ) throws(DatabaseError) -> Value? {
        var compiled: OpaquePointer?
        let status = sqlite3_prepare_v2(handle, sql, -1, &compiled, nil)
        guard status == SQLITE_OK, let compiled else { throw lastError(status) }
        let statement = Statement(compiled, self)
        defer { statement.finalize() }
        return try statement.step() ? read(statement) : nil
    }

    /// Defines an aggregate function of `count` arguments, whose result is NULL.
    /// - Parameters:
    ///   - context: `sqlite3_user_data` of each call.
    ///   - step: called for each row.
    func aggregate(
        _ name: String, of count: Int32, _ context: UnsafeMutableRawPointer,
        step:
            @convention(c) (
                OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?
            ) -> Void
    ) throws(DatabaseError) {
        let status = sqlite3_create_function_v2(
            handle, name, count, SQLITE_UTF8 | SQLITE_DIRECTONLY, context, nil, step, { _ in }, nil)
        guard status == SQLITE_OK else { throw lastError(status) }
    }

    func removeAggregate(_ name: String, of count: Int32) {
        sqlite3_create_function_v2(handle, name, count, SQLITE_UTF8, nil, nil, nil, nil, nil)
    }

    /// Rows changed by the last statement.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// Whether no transaction is open.
    var isIdle: Bool { sqlite3_get_autocommit(handle) != 0 }

    /// Copies the write-ahead log into the database and restarts it, so that the next frame is
    /// written at its beginning. Returns `false` if a reader is still using it.
    ///
    /// - Parameter truncating: whether to return the log's space to the file system as well.
    func restartLog(truncating: Bool) throws(DatabaseError) -> Bool {
        let mode = truncating ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_RESTART
        let status = sqlite3_wal_checkpoint_v2(handle, nil, mode, nil, nil)
        if status & 0xff == SQLITE_BUSY { return false }
        guard status == SQLITE_OK else { throw lastError(status) }
        frames.pointee = 0
        return true
    }

    fileprivate func lastError(_ status: Int32) -> DatabaseError {
        DatabaseError(
            code: sqlite3_extended_errcode(handle) == SQLITE_OK
                ? status : sqlite3_extended_errcode(handle),
            message: String(cString: sqlite3_errmsg(handle)))
    }
}

/// A compiled statement. Parameters count from 1, columns from 0, as in SQLite.
final class Statement {
    private var handle: OpaquePointer?
    private unowned let database: Database

    fileprivate init(_ handle: OpaquePointer, _ database: Database) {
        self.handle = handle
        self.database = database
    }

    fileprivate func finalize() {
        sqlite3_finalize(handle)
        handle = nil
    }

    func bind(_ index: Int32, _ value: Int64) {
        sqlite3_bind_int64(handle, index, value)
    }

    /// Binds bytes without copying them; they must not change until the next `reset`.
    func bind(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
        if let base = bytes.baseAddress, !bytes.isEmpty {
            sqlite3_bind_blob64(handle, index, base, UInt64(bytes.count), nil)
        } else {
            sqlite3_bind_zeroblob(handle, index, 0)
        }
    }

    /// Binds a copy of `bytes`.
    func bind(_ index: Int32, copying bytes: [UInt8]) {
        guard !bytes.isEmpty else {
            sqlite3_bind_zeroblob(handle, index, 0)
            return
        }
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        bytes.withUnsafeBytes { raw in
            _ = sqlite3_bind_blob64(
                handle, index, raw.baseAddress, UInt64(raw.count), transient)
        }
    }

    /// Binds a copy of a text.
    func bind(_ index: Int32, text: String) {
        let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        var text = text
        text.withUTF8 { bytes in
            _ = bytes.withMemoryRebound(to: CChar.self) {
                sqlite3_bind_text(handle, index, $0.baseAddress, Int32($0.count), transient)
            }
        }
    }

    func bindNull(_ index: Int32) { sqlite3_bind_null(handle, index) }

    /// Returns `true` if there is a row, `false` when done.
    func step() throws(DatabaseError) -> Bool {
        switch sqlite3_step(handle) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let status:
            let error = database.lastError(status)
            sqlite3_reset(handle)
            throw error
        }
    }

    /// Ends the current execution (and with it a read transaction). The parameters' values are
    /// replaced when they are next bound.
    func reset() { sqlite3_reset(handle) }

    /// Runs a statement without rows to completion, and makes it ready for the next use.
    func run() throws(DatabaseError) {
        _ = try step()
        sqlite3_reset(handle)
    }

    func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

    func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

    func text(_ column: Int32) -> String {
        guard let text = sqlite3_column_text(handle, column) else { return "" }
        return String(cString: text)
    }

    /// The column's bytes, valid until the next `step` or `reset`.
    func bytes(_ column: Int32) -> UnsafeRawBufferPointer {
        let base = sqlite3_column_blob(handle, column)
        return UnsafeRawBufferPointer(
            start: base, count: base == nil ? 0 : Int(sqlite3_column_bytes(handle, column)))
    }
}
