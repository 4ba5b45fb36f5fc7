import CSQLite

/// One SQLite connection to the file of observed servers, used by one thread at a time.
///
/// Other processes may use the file at the same time: a gateway and its successor, and the
/// commands. It has SQLite's rollback journal and no shared memory, so that a file that somebody
/// truncates is a read error, and a process that is killed leaves what it had committed.
final class ObservationDatabase {
    private let handle: OpaquePointer
    private let path: String

    /// How long to wait for another process, in milliseconds.
    private static let busyMilliseconds: Int32 = 5_000

    /// - Parameter mode: `SQLITE_OPEN_READONLY` or `SQLITE_OPEN_READWRITE`.
    init(_ path: String, mode: Int32) throws(ObservationFileError) {
        self.path = path
        var opened: OpaquePointer?
        let status = sqlite3_open_v2(path, &opened, mode | SQLITE_OPEN_NOMUTEX, "unix")
        guard status == SQLITE_OK, let opened else {
            sqlite3_close_v2(opened)
            throw ObservationFileError(path, code: status, String(cString: sqlite3_errstr(status)))
        }
        handle = opened
        sqlite3_busy_timeout(handle, Self.busyMilliseconds)
    }

    deinit { sqlite3_close_v2(handle) }

    /// Runs statements without results.
    func execute(_ sql: String) throws(ObservationFileError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw lastError }
    }

    /// The first column of the first row; `nil` without a row.
    func integer(_ sql: String) throws(ObservationFileError) -> Int64? {
        var result: Int64?
        try run(sql, []) { result = result ?? sqlite3_column_int64($0, 0) }
        return result
    }

    /// A value that replaces a `?`.
    enum Value {
        case integer(Int64)
        case text(String?)
    }

    /// Runs one statement.
    ///
    /// - Parameters:
    ///   - values: what replaces its `?`, in order.
    ///   - row: called for each row, with the statement for `text` and `sqlite3_column_int64`.
    func run(
        _ sql: String, _ values: [Value], _ row: (OpaquePointer) -> Void = { _ in }
    ) throws(ObservationFileError) {
        var compiled: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &compiled, nil) == SQLITE_OK, let compiled else {
            throw lastError
        }
        defer { sqlite3_finalize(compiled) }
        for (index, value) in values.enumerated() {
            let place = Int32(index + 1)
            switch value {
            case .integer(let number): sqlite3_bind_int64(compiled, place, number)
            case .text(nil): sqlite3_bind_null(compiled, place)
            case .text(let text?):
                // SQLITE_TRANSIENT: SQLite copies the text.
                sqlite3_bind_text(
                    compiled, place, text, Int32(clamping: text.utf8.count),
                    unsafeBitCast(-1, to: sqlite3_destructor_type.self))
            }
        }
        while true {
            switch sqlite3_step(compiled) {
            case SQLITE_ROW: row(compiled)
            case SQLITE_DONE: return
            default: throw lastError
            }
        }
    }

    /// The text of a column; `nil` for NULL.
    static func text(_ statement: OpaquePointer, _ column: Int32) -> String? {
        sqlite3_column_text(statement, column).map { String(cString: $0) }
    }

    private var lastError: ObservationFileError {
        ObservationFileError(
            path, code: sqlite3_extended_errcode(handle), String(cString: sqlite3_errmsg(handle)))
    }
}
