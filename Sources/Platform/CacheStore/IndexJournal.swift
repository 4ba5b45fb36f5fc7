import CachePolicy

/// Keys that were stored anew or invalidated while the index was not there to be told: entries
/// that the database still has for them must not come back when it is opened.
struct IndexJournal: Sendable {
    struct Change: Sendable, Equatable {
        let key: [UInt8]
        /// nil: every variant.
        let vary: [UInt8]?
    }

    /// Changes noted before giving up on the database's content altogether.
    static let maximumChanges = 4096
    /// Bytes of keys noted before doing so.
    static let maximumBytes = 1 << 20

    private(set) var changes: [Change] = []
    private var bytes = 0
    /// More has changed than was noted: nothing in the database can be trusted to be current.
    private(set) var isOverflowed = false

    /// Notes a change made during `phase`, if the database may still be opened after it.
    mutating func note(_ key: UnsafeRawBufferPointer, vary: [UInt8]?, in phase: DiskState) {
        switch phase {
        case .off(.disabled), .off(.closed), .ready: return
        case .opening, .off: break
        }
        guard !isOverflowed else { return }
        bytes += key.count + (vary?.count ?? 0)
        guard changes.count < Self.maximumChanges, bytes <= Self.maximumBytes else {
            isOverflowed = true
            changes = []
            return
        }
        changes.append(Change(key: [UInt8](key), vary: vary))
    }

    /// Notes that everything was removed.
    mutating func noteAll() {
        isOverflowed = true
        changes = []
    }
}
