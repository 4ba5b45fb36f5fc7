/// Every limit of the store, by name. The defaults are the product's.
package struct CacheStoreOptions: Sendable {
    /// Bytes the memory tier may hold, overhead included. 0 keeps nothing in memory.
    package var memoryBytes: Int = 64 << 20
    /// Bytes that the database's file may have; 0 turns the disk tier off
    /// (`DiskOffReason.disabled`). Its write-ahead log comes on top, see `checkpointBytes`.
    package var diskBytes: Int64 = 1 << 30
    /// Complete responses the disk tier may hold, whatever their size.
    package var diskEntries: Int = 500_000
    /// The folder of `cache.sqlite`; it is created (mode 0700) when missing.
    package var folder: String = ""

    /// Parts of the memory tier, each under its own lock; rounded up to a power of two.
    package var memoryShards: Int = 16
    /// The largest response that the memory tier keeps; at most an eighth of `memoryBytes`.
    package var memoryObjectBytes: Int = 16 << 20
    /// Variants (by `Vary`) kept of one key; the least recently used makes room.
    package var variantsPerKey: Int = 64
    /// Bodies from this size on are kept in a memory file, ready for sendfile(2).
    package var memoryFileBytes: Int = 32 << 10
    /// Memory files held open at a time; above it bodies are kept in the heap.
    package var memoryFiles: Int = 4096

    /// Up to this size a body is written at once when complete and read back whole (and promoted
    /// into memory); larger ones stream to and from the disk in chunks.
    package var wholeBodyBytes: Int = 1 << 20
    /// Bytes of a chunk of a streamed body.
    package var chunkBytes: Int = 64 << 10
    /// Up to this size a body is kept in its entry's row.
    package var inlineBodyBytes: Int = 64 << 10

    /// Bytes of responses of up to `wholeBodyBytes` that are being received. At the limit a store
    /// is refused.
    package var gatheringBytes: Int = 32 << 20
    /// Bytes of responses queued for the disk. At the limit the disk is passed over: what memory
    /// takes is stored there alone, and written when it leaves memory if there is room by then.
    package var queueBytes: Int = 32 << 20
    /// Bytes of bodies larger than `wholeBodyBytes` that are being gathered for the memory tier.
    /// At the limit a body goes to disk alone, or is refused if it cannot.
    package var stagingBytes: Int = 32 << 20
    /// Loads and chunk reads that may wait for a reader thread. At the limit they are refused.
    package var pendingReads: Int = 4096
    /// Reader threads, each with its own connection.
    package var readers: Int = 2

    /// A transaction is committed after so many operations,
    package var batchOperations: Int = 512
    /// or so many bytes,
    package var batchBytes: Int = 2 << 20
    /// or about so many changed pages,
    package var batchPages: Int = 256
    /// or so many milliseconds after its first one was queued.
    package var batchMilliseconds: Int = 10
    /// The write-ahead log is copied into the database when it holds so many bytes. When readers
    /// prevent that nothing is written from half as much more on. With the batch that passes this
    /// the log stays below 16 MiB, which is what the files may take beyond `diskBytes`.
    package var checkpointBytes: Int = 8 << 20
    /// Seconds between writing down when entries were last used.
    package var accessFlushSeconds: Int = 30
    /// Milliseconds to wait for another process that holds the database's lock.
    package var busyMilliseconds: Int = 2000
    /// Seconds after which a disk tier that went off because of a fault is tried again; doubles
    /// with each failure, up to 16 times. 0 leaves it off.
    package var retrySeconds: Int = 60
    /// Milliseconds that `close` may take to write down what is queued.
    package var closeMilliseconds: Int = 5000
    /// Pages that the database file may have; 0 is SQLite's own limit. At the limit SQLite says
    /// that the disk is full.
    package var maximumPages: Int64 = 0

    package init() {}
}
