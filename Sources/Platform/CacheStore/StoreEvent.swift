/// Why the disk tier is off.
public enum DiskOffReason: String, Sendable, Equatable, CaseIterable {
    /// `diskBytes` is 0.
    case disabled
    /// The folder cannot be created or written.
    case folder
    /// Another process is using the database.
    case locked
    /// No space left on the device, or the file reached `maximumPages`.
    case full
    /// The device failed a read or a write.
    case inputOutput
    /// The file or the file system is read-only.
    case readOnly
    /// The file at our path belongs to another application; it is left untouched.
    case foreign
    /// A damaged database could not be set aside.
    case corrupt
    /// Out of memory, or an SQLite error that matches none of the above.
    case other
    /// The files were deleted or truncated while they were open; a new database is being created.
    case filesChanged
    /// The store has been closed.
    case closed
}

/// The current state of the disk tier.
public enum DiskState: Sendable, Equatable {
    /// The database is being opened and its index read; nothing is found on disk yet.
    case opening
    case ready
    /// Another process writes the database, or may. What was in it is still read here, except for
    /// large bodies whose reading had not begun; nothing is stored.
    case handedOver
    case off(DiskOffReason)
}

/// Why a response was not stored, or not stored further.
public enum StoreRefusalReason: String, Sendable, Equatable, CaseIterable, Error {
    /// It is larger than any level accepts.
    case tooLarge
    /// `gatheringBytes` or `stagingBytes` is already used up by responses being received; or only
    /// a level below memory would accept it, whose queue (for the disk, `queueBytes`) is full.
    case queueFull
    /// Too large for memory, and the disk tier (or another level that would take it) is off or
    /// still opening.
    case diskOff
    /// More bytes than announced, or fewer, or the ticket was already finished.
    case lengthMismatch
    /// Key, vary key or head exceed the limit of an entry's record.
    case headTooLarge
    /// The key was invalidated, or a purge was about the response, after the request had been sent.
    case invalidated
    /// What a 304 confirmed is no longer the stored response, or was purged.
    case superseded
    /// No memory for it.
    case memory
    /// The disk is full of data that is being read, or not yet written.
    case noRoom
    /// The store has been closed.
    case closed
}

/// Something an operator should know. Sent from the store's own threads.
public enum StoreEvent: Sendable, Equatable {
    /// The database is open: the number of entries found, their bytes, and how long it took.
    case diskReady(entries: Int, bytes: Int64, milliseconds: Int)
    /// The disk tier was turned off. `detail` is SQLite's or the system's message; `retrySeconds`
    /// is the time until the next attempt, or `nil` for never.
    case diskOff(reason: DiskOffReason, detail: String, retrySeconds: Int?)
    /// A damaged (or newer than ours) database was renamed to `path`; a new one replaces it.
    case setAside(path: String, detail: String)
    /// A fault left the database unusable and it was removed. An empty one replaces it when the
    /// disk tier is tried again.
    case discarded(reason: DiskOffReason)
    /// The database's files were deleted or truncated while they were open; a new one replaces it.
    case filesChanged(detail: String)
    /// An entry failed its checksum and was dropped without being served.
    case damagedEntry(id: Int64)
    /// Responses that an earlier process had begun but not completed were removed.
    case removedIncomplete(entries: Int)
    /// The database's layout was migrated from one version to another.
    case migrated(from: Int, to: Int)
    /// The database was handed over to whichever process takes it, or to a certain one; how many
    /// large bodies are still read here, and how long it took.
    case handedOver(reading: Int, milliseconds: Int)
    /// The database is used while its former writer still reads from it (`true`), or no longer.
    case sharing(Bool)
}

/// Entries evicted from the disk, by the limit that was exceeded.
public struct DiskEvictions: Sendable, Equatable {
    /// Bytes.
    public var bytes: UInt64 = 0
    /// Entries.
    public var entries: UInt64 = 0
    /// Variants of one key.
    public var variants: UInt64 = 0

    /// All of them.
    public var total: UInt64 { bytes + entries + variants }
}

/// Values for metrics, read without waiting for any thread of the store.
public struct StoreStatistics: Sendable, Equatable {
    public var memoryEntries = 0
    public var memoryBytes = 0
    /// Bytes of system memory that the heap of stored responses occupies, including holes.
    public var memoryHeapBytes = 0
    /// Entries evicted from memory.
    public var memoryEvictions: UInt64 = 0
    /// Memory files held open.
    public var memoryFiles = 0

    public var diskState = DiskState.opening
    public var diskEntries = 0
    public var diskEntriesLimit = 0
    /// Bytes that the entries on disk take, including overhead of rows and pages.
    public var diskBytes: Int64 = 0
    /// Bytes of the database's file and its write-ahead log.
    public var diskFileBytes: Int64 = 0
    /// The part of them in the log's file.
    public var diskLogBytes: Int64 = 0
    /// Entries evicted from the disk because there were too many bytes, entries, or variants of
    /// their key.
    public var diskEvictions = DiskEvictions()
    /// Rows read, and their bytes.
    public var diskRowsRead: UInt64 = 0
    public var diskBytesRead: UInt64 = 0
    /// How often a new database was created because the old one was damaged, or its files were
    /// gone.
    public var diskRestarts: UInt64 = 0
    public var diskHits: UInt64 = 0
    public var diskMisses: UInt64 = 0
    public var diskWrites: UInt64 = 0
    public var damagedEntries: UInt64 = 0

    /// Bytes on their way to disk (see `CacheStoreOptions.queueBytes`).
    public var queueBytes = 0
    public var queueLimitBytes = 0
    /// Bytes of responses being received (see `CacheStoreOptions.gatheringBytes`).
    public var gatheringBytes = 0
    /// Bytes of large bodies being gathered for memory (see `CacheStoreOptions.stagingBytes`).
    public var stagingBytes = 0
    /// Bytes of bodies that are read while they arrive.
    public var sharingBytes = 0
    /// Requests under way whose responses may be stored.
    public var flights = 0
    /// How often a response was not written to disk because its queue was full, or because nothing
    /// on the disk could be evicted.
    public var diskSkipped: UInt64 = 0
    /// Operations waiting for the writer.
    public var queueDepth = 0
    /// Reads waiting for a reader.
    public var pendingReads = 0
    /// What was purged.
    public var purges = PurgeCounts()
    /// Every level below memory, in the order in which they are asked; the first is the disk.
    public var levels: [LevelStatistics] = []
    /// Stores refused, by reason, in the order of `StoreRefusalReason.allCases`.
    public var refusals = [UInt64](repeating: 0, count: StoreRefusalReason.allCases.count)
}
