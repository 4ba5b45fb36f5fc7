import CSQLite

/// Why the file of observed servers cannot be used.
package enum ObservationFileError: Error, Sendable, Hashable, CustomStringConvertible {
    /// It does not exist.
    case missing(path: String)
    /// Its content is not what SQLite or this program has written.
    case damaged(path: String, detail: String)
    /// A newer program has written it.
    case newer(path: String, version: Int64)
    /// It was deleted or renamed while it was open.
    case moved(path: String)
    /// Anything else, such as a full disk.
    case unusable(path: String, detail: String)

    /// Whether it can be set aside to begin again.
    package var isDamage: Bool { if case .damaged = self { true } else { false } }
    /// Whether another file can take its place at once.
    package var isLoss: Bool {
        switch self {
        case .damaged, .moved: true
        case .missing, .newer, .unusable: false
        }
    }

    /// SQLITE_READONLY_DBMOVED, a macro that Swift does not see.
    private static let movedCode: Int32 = 8 | 4 << 8

    package var description: String {
        switch self {
        case .missing(let path): "\(path): there is no such file"
        case .damaged(let path, let detail): "\(path): damaged: \(detail)"
        case .moved(let path): "\(path): it was deleted or renamed"
        case .newer(let path, let version):
            "\(path): has format \(version), of a newer version of this program"
        case .unusable(let path, let detail): "\(path): \(detail)"
        }
    }

    /// The error of a call of SQLite.
    init(_ path: String, code: Int32, _ detail: String) {
        switch code & 0xff {
        case _ where code == Self.movedCode: self = .moved(path: path)
        case SQLITE_CORRUPT, SQLITE_NOTADB: self = .damaged(path: path, detail: detail)
        default: self = .unusable(path: path, detail: detail)
        }
    }
}
