import CSQLite
import Clocks
import HTTPCore

/// Why a query has no result.
enum EntryQueryError: Error, Equatable, CustomStringConvertible {
    /// SQLite's message.
    case failed(String)
    /// Not exactly one SELECT.
    case notOneSelect
    case timedOut(seconds: Double)

    var description: String {
        switch self {
        case .failed(let message): message
        case .notOneSelect: "expected one SELECT, of the view cache"
        case .timedOut(let seconds): "not ended after \(seconds) s; expected a larger --limit-time"
        }
    }
}

/// One stored response, as the view `cache` has it.
struct EntryRow: Equatable {
    var url: String
    var host: String
    /// `GET`, or `QUERY` for responses to that method.
    var method: String
    var status: Int64
    /// The media type, without parameters.
    var type: String?
    var bytes: Int64?
    var hits: Int64
    /// Seconds since 1970.
    var stored: Int64?
    var expires: Int64?
    var lastUsed: Int64?
    /// How the origin was verified.
    var trust: String?
    /// Separated by spaces.
    var tags: String?
    /// The names of the fields by which it was selected, in lower case, separated by commas.
    var vary: String?
    /// `memory`, `disk`, or `memory,disk`.
    var tiers: String
}

/// A database of its own, with a copy of what is known about stored responses, for one SELECT.
///
/// It is a private temporary file that SQLite removes. Nobody waits for it, and nothing that a
/// query does reaches the cache: an authorizer allows reading the view and SQLite's own functions,
/// and nothing else.
final class EntryDatabase {
    /// The columns of the view, in order.
    static let columns: [(name: String, type: String)] = [
        ("url", "TEXT"), ("host", "TEXT"), ("method", "TEXT"), ("status", "INTEGER"),
        ("type", "TEXT"), ("bytes", "INTEGER"), ("hits", "INTEGER"), ("stored", "INTEGER"),
        ("expires", "INTEGER"), ("last_used", "INTEGER"), ("trust", "TEXT"), ("tags", "TEXT"),
        ("vary", "TEXT"), ("tiers", "TEXT"),
    ]
    /// A value of a result.
    enum Cell: Equatable {
        case null
        case number(String)
        case text(String)

        /// Nothing for NULL.
        var text: String {
            switch self {
            case .null: ""
            case .number(let text), .text(let text): text
            }
        }
    }

    /// The largest value that a query may make, in bytes.
    private static let maximumValueBytes: Int32 = 16 << 20

    private let handle: OpaquePointer
    private var insertion: OpaquePointer?
    private let deadline: Deadline

    /// When a query ends at the latest.
    private final class Deadline {
        /// Milliseconds of the monotonic clock.
        var end = Int64.max
    }

    init() throws(EntryQueryError) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
        // An empty name: a temporary file, in memory as long as it is small.
        guard sqlite3_open_v2("", &opened, flags, nil) == SQLITE_OK, let opened else {
            sqlite3_close_v2(opened)
            throw .failed("no database can be opened")
        }
        handle = opened
        deadline = Deadline()
        let columns = Self.columns.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
        try execute("PRAGMA journal_mode = OFF")
        try execute("PRAGMA synchronous = OFF")
        try execute("CREATE TABLE entry (\(columns))")
        try execute("CREATE VIEW cache AS SELECT * FROM entry")
        try execute("BEGIN")
        let marks = Self.columns.map { _ in "?" }.joined(separator: ", ")
        insertion = try prepare("INSERT INTO entry VALUES (\(marks))")
    }

    deinit {
        sqlite3_finalize(insertion)
        sqlite3_close_v2(handle)
    }

    /// Adds a row; not after ``query(_:seconds:_:)``.
    func add(_ row: EntryRow) throws(EntryQueryError) {
        guard let insertion else { return }
        let texts: [Int32: String?] = [
            1: row.url, 2: row.host, 3: row.method, 5: row.type, 11: row.trust, 12: row.tags,
            13: row.vary, 14: row.tiers,
        ]
        let numbers: [Int32: Int64?] = [
            4: row.status, 6: row.bytes, 7: row.hits, 8: row.stored, 9: row.expires,
            10: row.lastUsed,
        ]
        for (index, text) in texts {
            guard let text else {
                sqlite3_bind_null(insertion, index)
                continue
            }
            // SQLITE_TRANSIENT: SQLite copies the text.
            sqlite3_bind_text(
                insertion, index, text, Int32(clamping: text.utf8.count),
                unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        }
        for (index, number) in numbers {
            if let number {
                sqlite3_bind_int64(insertion, index, number)
            } else {
                sqlite3_bind_null(insertion, index)
            }
        }
        let status = sqlite3_step(insertion)
        sqlite3_reset(insertion)
        guard status == SQLITE_DONE else { throw lastError }
    }

    /// Runs one SELECT.
    ///
    /// - Parameters:
    ///   - seconds: how long it may take.
    ///   - header: called once with the names of the columns.
    ///   - row: called for each row.
    func query(
        _ sql: String, seconds: Double, header: ([String]) throws -> Void,
        row: ([Cell]) throws -> Void
    ) throws {
        try protect(seconds: seconds)
        let statement = try prepareOnly(sql)
        defer { sqlite3_finalize(statement) }
        let count = sqlite3_column_count(statement)
        guard count > 0, sqlite3_stmt_readonly(statement) != 0 else {
            throw EntryQueryError.notOneSelect
        }
        try header(
            (0..<count).map { sqlite3_column_name(statement, $0).map { String(cString: $0) } ?? "" }
        )
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW:
                try row((0..<count).map { Self.cell(statement, $0) })
            case SQLITE_DONE: return
            case SQLITE_INTERRUPT: throw EntryQueryError.timedOut(seconds: seconds)
            default: throw lastError
            }
        }
    }

    private static func cell(_ statement: OpaquePointer, _ index: Int32) -> Cell {
        let type = sqlite3_column_type(statement, index)
        guard type != SQLITE_NULL, let text = sqlite3_column_text(statement, index) else {
            return .null
        }
        let isNumber = type == SQLITE_INTEGER || type == SQLITE_FLOAT
        return isNumber ? .number(String(cString: text)) : .text(String(cString: text))
    }

    /// From here on nothing can be changed, opened or loaded, and time is limited.
    private func protect(seconds: Double) throws(EntryQueryError) {
        if insertion != nil {
            sqlite3_finalize(insertion)
            insertion = nil
            try execute("COMMIT")
        }
        sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0)
        sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, Self.maximumValueBytes)
        sqlite3_set_authorizer(
            handle,
            { _, action, first, second, _, _ in
                EntryDatabase.allows(action, first, second) ? SQLITE_OK : SQLITE_DENY
            }, nil)
        deadline.end = Clock.monotonicMilliseconds() + Int64(seconds * 1000)
        sqlite3_progress_handler(
            handle, 10_000,
            { context in
                guard let context else { return 1 }
                let deadline = Unmanaged<Deadline>.fromOpaque(context).takeUnretainedValue()
                return Clock.monotonicMilliseconds() >= deadline.end ? 1 : 0
            }, Unmanaged.passUnretained(deadline).toOpaque())
    }

    /// Whether a query may do this.
    private static func allows(
        _ action: Int32, _ first: UnsafePointer<CChar>?, _ second: UnsafePointer<CChar>?
    ) -> Bool {
        switch action {
        case SQLITE_SELECT, SQLITE_RECURSIVE: true
        // There is nothing else but what a query names itself, and what SQLite knows of the
        // database.
        case SQLITE_READ:
            first.map { name in
                let name = String(cString: name).lowercasedASCII
                return !["sqlite_", "pragma_", "dbstat"].contains { name.hasPrefix($0) }
            } ?? false
        // SQLite's own functions read no files, but for this one.
        case SQLITE_FUNCTION:
            second.map { String(cString: $0).lowercasedASCII != "load_extension" } ?? false
        default: false
        }
    }

    /// A statement, if there is nothing but that.
    private func prepareOnly(_ sql: String) throws(EntryQueryError) -> OpaquePointer {
        var compiled: OpaquePointer?
        var rest: String = ""
        let status = sql.withCString { start in
            var tail: UnsafePointer<CChar>?
            let status = sqlite3_prepare_v2(handle, start, -1, &compiled, &tail)
            rest = tail.map { String(cString: $0) } ?? ""
            return status
        }
        guard status == SQLITE_OK else {
            sqlite3_finalize(compiled)
            throw status == SQLITE_AUTH ? .notOneSelect : lastError
        }
        guard let compiled, rest.allSatisfy({ $0.isWhitespace || $0 == ";" }) else {
            sqlite3_finalize(compiled)
            throw .notOneSelect
        }
        return compiled
    }

    private func prepare(_ sql: String) throws(EntryQueryError) -> OpaquePointer {
        var compiled: OpaquePointer?
        guard sqlite3_prepare_v2(handle, sql, -1, &compiled, nil) == SQLITE_OK, let compiled else {
            throw lastError
        }
        return compiled
    }

    private func execute(_ sql: String) throws(EntryQueryError) {
        guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw lastError }
    }

    private var lastError: EntryQueryError {
        .failed(String(cString: sqlite3_errmsg(handle)))
    }
}
