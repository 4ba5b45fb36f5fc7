/// All limits of the store, by name, with the product's defaults.
public struct CacheStoreOptions: Sendable {
    /// The maximum number of bytes in the memory tier, including overhead. 0 keeps nothing in
    /// memory.
    public var memoryBytes: Int = 64 << 20
    /// The maximum size of the database file in bytes; 0 turns the disk tier off
    /// (`DiskOffReason.disabled`). Its write-ahead log comes on top, see `checkpointBytes`.
    public var diskBytes: Int64 = 1 << 30
    /// The maximum number of complete responses in the disk tier, whatever their size.
    public var diskEntries: Int = 500_000
    /// The folder of `cache.sqlite`; created (mode 0700) if missing.
    public var folder: String = ""

    /// A descriptor with the folder's lock, from the process that this one succeeds
    /// (`DiskHandover.lock`); `nil` to take the lock. The store closes it.
    public var inheritedLock: Int32?

    /// Parts of the memory tier, each under its own lock; rounded up to a power of two.
    public var memoryShards: Int = 16
    /// The largest response that the memory tier keeps; at most an eighth of `memoryBytes`.
    public var memoryObjectBytes: Int = 16 << 20
    /// The maximum number of variants (by `Vary`) of one key; the least recently used makes room.
    public var variantsPerKey: Int = 64
    /// Bodies of at least this size are kept in a memory file, ready for sendfile(2).
    public var memoryFileBytes: Int = 32 << 10
    /// The maximum number of open memory files; above it bodies are kept in the heap.
    public var memoryFiles: Int = 4096

    /// Up to this size a body is written at once when complete, and read back in one piece (and
    /// promoted into memory); larger ones stream to and from the disk in chunks.
    public var wholeBodyBytes: Int = 1 << 20
    /// Bytes of a chunk of a streamed body.
    public var chunkBytes: Int = 64 << 10
    /// Up to this size a body is kept in its entry's row.
    public var inlineBodyBytes: Int = 64 << 10

    /// The maximum number of bytes of responses of up to `wholeBodyBytes` that are being received.
    /// At the limit a store is refused.
    public var gatheringBytes: Int = 32 << 20
    /// The maximum number of bytes of responses queued for the disk. At the limit the disk is
    /// bypassed: a response that memory accepts is stored only there, and written when it leaves
    /// memory if there is space by then.
    public var queueBytes: Int = 32 << 20
    /// The maximum number of bytes of bodies larger than `wholeBodyBytes` that are being gathered
    /// for the memory tier. At the limit a body goes only to disk, or is refused if it cannot.
    public var stagingBytes: Int = 32 << 20
    /// The maximum number of loads and chunk reads waiting for a reader thread; more are refused.
    public var pendingReads: Int = 4096
    /// Reader threads, each with its own connection.
    public var readers: Int = 2

    /// A transaction is committed after this many operations,
    public var batchOperations: Int = 512
    /// or this many bytes,
    public var batchBytes: Int = 2 << 20
    /// or about this many changed pages,
    public var batchPages: Int = 256
    /// or this many milliseconds after its first one was queued.
    public var batchMilliseconds: Int = 10
    /// The write-ahead log is copied into the database when it holds this many bytes. If readers
    /// prevent that, nothing is written from half as much more on. With the batch that exceeds
    /// this, the log stays below 16 MiB, which is what the files may take beyond `diskBytes`.
    public var checkpointBytes: Int = 8 << 20
    /// The interval in seconds at which the times of last use are written to the disk.
    public var accessFlushSeconds: Int = 30
    /// Milliseconds to wait for another process that holds the database's lock.
    public var busyMilliseconds: Int = 2000
    /// Seconds after which a disk tier that was turned off by a fault is tried again; doubles with
    /// each failure, up to 16 times. 0 leaves it off.
    public var retrySeconds: Int = 60
    /// The maximum number of milliseconds that `close` takes to write what is queued.
    public var closeMilliseconds: Int = 5000
    /// The maximum number of pages of the database file; 0 for SQLite's own limit. At the limit
    /// SQLite reports that the disk is full.
    public var maximumPages: Int64 = 0

    public init() {}
}
