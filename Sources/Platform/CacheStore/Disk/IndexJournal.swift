import CachePolicy

/// Keys that were stored or invalidated while there was no index to record it: entries that the
/// database still has for them must not come back when it is opened.
struct IndexJournal: Sendable {
    struct Change: Sendable, Equatable {
        let key: [UInt8]
        /// `nil` for every variant.
        let vary: [UInt8]?
    }

    /// The number of recorded changes above which the database's content is given up altogether.
    static let maximumChanges = 4096
    /// The number of recorded key bytes above which it is.
    static let maximumBytes = 1 << 20

    private(set) var changes: [Change] = []
    private var bytes = 0
    /// More has changed than was recorded: nothing in the database can be assumed to be current.
    private(set) var isOverflowed = false

    /// Records a change made during `phase`, if the database may still be opened after it.
    mutating func note(_ key: UnsafeRawBufferPointer, vary: [UInt8]?, in phase: DiskState) {
        switch phase {
        case .off(.disabled), .off(.closed), .ready: return
        case .opening, .handedOver, .off: break
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

    /// Records that everything was removed.
    mutating func noteAll() {
        isOverflowed = true
        changes = []
    }
}
