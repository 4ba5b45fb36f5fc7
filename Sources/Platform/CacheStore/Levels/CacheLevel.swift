import CachePolicy

/// A level of the cache below memory: SQLite (`DiskTier`), and whatever is added.
///
/// Memory is the first level, and no `CacheLevel`: `CacheStore` calls it directly, so that a hit
/// there costs no call through a protocol, and its shards' locks are what the levels agree under.
/// To add a level, conform a type to this protocol and pass it to `CacheStore.init(options:below:)`
/// (or, if it needs nothing from a higher module, list it there beside `disk`). The tests in
/// `LevelTests` hold for any level, alone and below others.
///
/// **Who calls.** Any thread, several at the same time. No call waits: not for I/O, not for another
/// thread, not for a lock that is held across a system call. A level has threads or event loops of
/// its own, or those of its host; what takes longer than a few microseconds is queued for them, in
/// bounded queues.
///
/// **The lock of a key.** The calls under "Changes of a key" are made under the lock of the key's
/// memory shard, one at a time for each key, for memory and all levels together: this is what makes
/// a change atomic. They change what the level knows and return. They call nothing that takes the
/// lock again (so no `publish`, no `CacheStore`), call no completion, and wake no thread, but leave
/// that to `LevelWork`, which is carried out by the same thread when the lock is free. Locks of the
/// level may be taken inside the key's lock, never the other way round.
///
/// **What a change promises.** As soon as it returns, no load of the key that begins later finds
/// what was replaced or removed, and no load that began earlier publishes it (see `load`). If a
/// level carries changes out later, it does so in the order of the calls for one key, and until
/// then it answers a load from what is queued, or finds nothing.
///
/// **Who owns what.** A `CachedResponse` is immutable and shared; a level may hold it as long as it
/// likes, which keeps its memory occupied. Buffers are valid during the call. The store owns its
/// levels, and a level has no reference to the store: a load brings the memory tier that it fills.
///
/// **Failure.** Losing a level costs hits, never requests: no call throws or traps because the
/// level is slow, full, damaged or away. It then finds nothing, refuses what it is offered with a
/// reason, and says so in its `state`. What it cannot have removed meanwhile must not be found when
/// it is back. Every completion that a call has accepted is called once, whatever happens, on any
/// thread and without a lock held.
package protocol CacheLevel: ChunkSource {
    // MARK: What it is able to do, and how it is doing

    /// Bytes of the largest body that it keeps.
    var largestBody: UInt64 { get }

    /// Whether it can be used at present. It may change at any time; calls need not be preceded by
    /// it.
    var state: LevelState { get }

    /// Its counts since the start.
    func statistics() -> LevelStatistics

    /// Whether other gateways use it as well, so that it may have what they have fetched.
    var isShared: Bool { get }

    // MARK: Looking

    /// The different lists of names that the key's variants nominate by Vary; empty if it does not
    /// have the key. A `nil` element says that it may have variants whose names are unknown without
    /// asking it: all that a level without an index in memory can say.
    ///
    /// For such a level `mayHold` is true of every key while it can be used, and a load names only
    /// the variants whose names other levels know: it looks for all of the key's variants, up to a
    /// limit of its own, and leaves the choice to the caller.
    func varyNames(_ key: CacheKeyView) -> [[UInt8]?]

    /// Whether a load may find one of these variants (none, if no level knows any names), or one
    /// whose names are unknown.
    func mayHold(_ key: CacheKeyView, _ variants: [VaryKey]) -> Bool

    /// Reads the key's variants, and calls `load.completion`. Each one found is made with
    /// `load.memory.makeResponse` and published with `load.publish`, which asks the level,
    /// under the lock of the key, whether it still has it: not if the key has been changed or
    /// everything purged since the load began. A level without an index keeps a `StoreFlights` for
    /// this. Bodies of up to `CacheStoreOptions.wholeBodyBytes` are read completely; larger ones
    /// are a `.disk` body of this level.
    ///
    /// If it is a look (`load.look`), the level notes no use and counts no hit or miss, may leave
    /// any body where it is, and says if it cannot read what it has (`LevelLook.fail`).
    ///
    /// - Parameter wakes: `false` if `wakeReaders` follows soon.
    /// - Returns: `false`, and the completion is not called, if it cannot: a miss.
    func load(_ load: LevelLoad, wakes: Bool) -> Bool

    /// Makes sure that loads that did not wake anybody are carried out.
    func wakeReaders()

    // MARK: Changes of a key, under its lock

    /// Replaces the variant with the same Vary key by a response that is complete in memory.
    /// - Parameter isInMemory: whether the memory tier keeps it, so that it has another chance (see
    ///   `leaveMemory`).
    /// - Returns: `nil` if a load finds it from now on; otherwise why not. What it replaces is gone
    ///   in both cases.
    func store(
        _ response: CachedResponse, isInMemory: Bool, _ work: inout LevelWork
    ) -> StoreRefusalReason?

    /// Removes the variant with the same Vary key: another level has its successor.
    func forget(variantOf response: CachedResponse, _ work: inout LevelWork)

    /// Whether this very response is what it has for its key; `false` if that is not known, which
    /// costs a hit.
    func holds(_ response: CachedResponse) -> Bool

    /// Replaces a response by one with another head and the same body, after a 304. Their Vary keys
    /// may differ.
    /// - Parameter isInMemory: as for `store`.
    /// - Returns: whether a load finds `response` from now on. If not, it finds neither of them
    ///   or, if the body is its own, has changed nothing.
    func freshen(
        _ old: CachedResponse, with response: CachedResponse, isInMemory: Bool,
        _ work: inout LevelWork
    ) -> Bool

    /// A response is being evicted from memory: the last chance to take what is only there.
    /// - Parameter wasUsed: whether memory has found it for requests while it had it.
    func leaveMemory(_ response: CachedResponse, wasUsed: Bool, _ work: inout LevelWork)

    /// Removes every variant of a key.
    func remove(_ key: CacheKeyView, _ work: inout LevelWork)

    /// Removes this one response if it is still what the level has; if that is not known, the
    /// variant with the same Vary key, even if that is its successor. Whoever knows that there is
    /// one does not call this.
    func remove(_ response: CachedResponse, _ work: inout LevelWork)

    // MARK: Bodies that arrive in pieces

    /// Begins to receive a body too large to be written at once, but not larger than `largestBody`
    /// as far as that is known.
    func beginStream(_ arriving: ArrivingResponse) throws(StoreRefusalReason) -> any LevelStream

    /// Whether it would accept this many bytes now, of a response that memory does not keep.
    func hasRoom(for bytes: Int) -> Bool

    /// Whether it is so far behind that whoever has a large body for it should pause. `false` for a
    /// level that would rather lose a body than delay a client.
    var isCongested: Bool { get }

    /// Calls `completion` when it has caught up; at once if it has.
    func whenDrained(_ completion: @escaping @Sendable () -> Void)

    // MARK: As a whole

    /// Removes everything. Called without a lock; what it promises is the same as for a change of
    /// every key.
    func purge()

    /// Purges, hard or soft, what has just been purged from memory and disk; not called for the
    /// disk (`BansInForce`). Keys that were named have been removed by `remove` besides. Called
    /// without a lock, but one at a time; what it promises is the same as for a change of each key.
    /// A level that cannot tell what is purged may purge more.
    /// - Parameter now: the time, in seconds since 1970: a soft purge makes stale from then on.
    func purge(_ purges: [Purge], _ now: Int64)

    /// Further fields whose members are tags of a response, in lower case: what a purge of a tag is
    /// about.
    func addTagFields(_ names: [[UInt8]])

    /// Calls `completion` when everything accepted until now has been carried out or given up.
    func flush(_ completion: @escaping @Sendable () -> Void)

    /// Carries out what is queued, within a limit of time, and ends its threads. The only call that
    /// waits, except on one of those threads (the last reference to the store was dropped in a
    /// completion). Other calls may follow, and find a level that is off.
    func close()
}

// For levels that have nothing to wake, and that nobody waits for.
extension CacheLevel {
    package var isShared: Bool { false }
    package func purge(_ purges: [Purge], _ now: Int64) { purge() }
    package func addTagFields(_ names: [[UInt8]]) {}
    package func wakeReaders() {}
    package func hasRoom(for bytes: Int) -> Bool { state == .ready }
    package var isCongested: Bool { false }
    package func whenDrained(_ completion: @escaping @Sendable () -> Void) { completion() }
}

extension LevelStream {
    package func received() -> PartialBody? { nil }
}

/// What a level has received of a body.
package struct PartialBody {
    /// Whole chunks that can be read; `nil` if there are none yet. They stay readable until the
    /// stream is abandoned.
    package let written: LevelBody?
    /// What follows, in order; valid until the next call of the stream.
    package let rest: [UnsafeRawBufferPointer]
}

/// What is known of a response whose body begins to arrive. The key is valid during the call.
package struct ArrivingResponse {
    package let key: CacheKeyView
    package let varyKey: VaryKey
    /// Bytes of its key, Vary key and head.
    package let textBytes: Int
    /// Bytes of its body, if that was announced.
    package let expectedLength: UInt64?
}

/// Where the chunks of a stored body are read: a level.
package protocol ChunkSource: AnyObject, Sendable {
    /// Reads a chunk and calls `completion`.
    /// - Returns: `false`, and the completion is not called, if too many reads are waiting.
    func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool

    /// Nobody reads this body any more (`LevelBody.id`); until then its chunks stay readable,
    /// whatever happens to their entry. May be called under the lock of a key.
    func release(body id: Int64)
}

/// A body on its way into a level while it is being received. Used by one thread; abandoned if it
/// is freed before `publish`.
package protocol LevelStream: AnyObject {
    /// Adds bytes. If it throws, the level has removed what it had, and the stream has ended.
    func append(_ bytes: UnsafeRawBufferPointer) throws(StoreRefusalReason)

    /// What has been received so far; `nil` if that cannot be read before the body is complete.
    func received() -> PartialBody?

    /// Completes the body. It is visible to nobody until `publish`.
    func finish() throws(StoreRefusalReason) -> LevelBody

    /// Under the lock of the key, after `finish`: `CacheLevel.store` for a response whose body was
    /// streamed.
    /// - Parameters:
    ///   - response: its body is the result of `finish`.
    ///   - copy: the same response as the memory tier keeps it; `nil` if it does not.
    func publish(
        _ response: CachedResponse, copy: CachedResponse?, _ work: inout LevelWork
    ) -> StoreRefusalReason?

    /// Removes what was received, unless it has been published. Safe to call again.
    func abandon()
}
