/// Why nobody can say what is stored: a list, a count or a look would lack something.
///
/// A disk tier that is not configured is no error: there is nothing but memory then.
public enum CacheListingError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Too many lists or reads are waiting. Nothing was done.
    case busy
    /// The database is still being opened.
    case diskOpening
    /// The disk tier is off because of a fault.
    case diskOff(DiskOffReason)
    /// Another process has the database, or is about to have it: it has to be asked.
    case handedOver
    /// The database could not be read. `detail` is SQLite's message.
    case readFailed(detail: String)
    /// The database was opened anew since the list was begun, or another process has begun it: what
    /// was listed and what follows do not belong together.
    case outdated
    /// The store has been closed.
    case closed

    static let noMemory = CacheListingError.readFailed(detail: "there is no memory for it")

    /// What is wrong, in words.
    public var description: String {
        switch self {
        case .busy: "too many lists of the cache, or reads from it, are waiting"
        case .diskOpening: "the cache's database is still being opened"
        case .diskOff(let reason): "the cache's disk tier is off: \(reason.text)"
        case .handedOver: "another process has the cache's database, or will soon have it"
        case .readFailed(let detail): "the cache's database could not be read: \(detail)"
        case .outdated:
            "the cache's database was opened anew since the list was begun, or another process "
                + "has begun it"
        case .closed: "the cache has been closed"
        }
    }
}

extension DiskOffReason {
    /// The reason in words.
    public var text: String {
        switch self {
        case .disabled: "none is configured"
        case .folder: "its folder cannot be created, or cannot be written"
        case .locked: "another process is using the database"
        case .full: "there is no space left on the device, or the database has its largest size"
        case .inputOutput: "the device has failed"
        case .readOnly: "the file or its file system is read-only"
        case .foreign: "the file belongs to another application"
        case .corrupt: "the database is damaged, and could not be set aside"
        case .other: "SQLite has failed, or there is no memory"
        case .filesChanged: "its files were deleted or truncated by another program"
        case .closed: "it has been closed"
        }
    }
}
