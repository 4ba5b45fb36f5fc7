import CachePolicy
import CacheStore
import SharedCache

/// A lookup that has been sent. Used by the thread alone that has sent it: the level's, or a
/// worker's.
final class PendingLoad: @unchecked Sendable {
    let load: LevelLoad
    let flight: StoreFlight
    let began: Int64
    var deadline: Int64
    let digest: [UInt8]
    /// Own removals before it was sent.
    let removals: UInt64
    /// By what the fingerprints of what it finds differ in the engine (``SystemTrust``).
    let mark: UInt64
    /// For whom it looks again, if it does; then it has no deadline, and nobody else waits for it.
    let wait: LeaseWait?
    /// Where it was sent to, and the last purge of this gateway that had been sent before.
    var link: ServerLink?
    var announcement: UInt64 = 0
    var found: [FoundValue] = []
    /// Replies that are missing before it can be answered.
    var missing = 0
    /// Whether it has been answered.
    var isOver = false

    init(
        _ load: LevelLoad, _ flight: StoreFlight, began: Int64, deadline: Int64,
        digest: [UInt8], removals: UInt64, mark: UInt64, for wait: LeaseWait? = nil
    ) {
        self.load = load
        self.wait = wait
        self.flight = flight
        self.began = began
        self.deadline = deadline
        self.digest = digest
        self.removals = removals
        self.mark = mark
    }

    /// Runs `body` with the bytes of the key.
    func withKey<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        load.key.withUnsafeBytes(body)
    }
}

/// A value that was read for a lookup. Used by the thread alone that has sent that.
final class FoundValue: @unchecked Sendable {
    /// What is stored: record and body.
    let bytes: [UInt8]
    let value: SharedValue
    let vary: VaryKey
    /// Since when a soft purge has made it stale, in seconds since 1970; 0 if none has.
    var staleSince: Int64 = 0
    /// A body in chunks, as it is read; empty if it stays in the engine.
    var body: [UInt8] = []
    /// Whether a part of it is missing.
    var isBroken = false

    init(_ bytes: [UInt8], _ value: SharedValue, _ vary: VaryKey) {
        self.bytes = bytes
        self.value = value
        self.vary = vary
    }
}

/// A store that has been sent. Used by the level's thread alone.
final class PendingStore: @unchecked Sendable {
    let store: SharedStore
    let digest: [UInt8]
    /// The names of the fields of its variant, and of the one that it replaces.
    let fields: [[UInt8]]
    /// The chunks that it has written itself; `nil` for none.
    let ownChunks: SharedChunks?
    /// The body's identity, if it is in chunks.
    let token: SharedToken?
    /// Why it cannot be kept; `nil` while it can.
    var failure: SharedLevelReason?

    init(
        _ store: SharedStore, digest: [UInt8], fields: [[UInt8]], ownChunks: SharedChunks?,
        token: SharedToken?
    ) {
        self.store = store
        self.digest = digest
        self.fields = fields
        self.ownChunks = ownChunks
        self.token = token
    }
}

/// What the next reply is to. One for each command that was sent.
enum Expected: Sendable {
    /// Nothing follows from it.
    case nothing
    /// A command of a transaction, whose end says more.
    case queued(PendingStore)
    /// The end of a transaction that stores.
    case stored(PendingStore)
    /// A chunk was written for it, or kept.
    case chunk(PendingStore)
    /// A chunk of a body that is not published yet.
    case early
    /// A removal; if it fails, the key was not removed.
    /// - Parameter isInvalid: whether all gateways have to know of it.
    case removed(SharedKey, isInvalid: Bool)
    /// Fields of the hash of a key that is about to be removed, and whether one of them is its
    /// number.
    case fieldCount(PendingRemoval)
    case numberCount(PendingRemoval)
    /// A command of the transaction that draws the key's new number, and the end of that.
    case numberQueued(PendingRemoval)
    case numberSet(PendingRemoval)
    /// The place of an own purge in the stream.
    /// - Parameter number: its announcement's if it is the last one of that; otherwise 0.
    case announced(FleetPurge, number: UInt64)
    /// What was told to others; if it fails, they are not told.
    case told
    /// The others were told that a key is invalid; if it fails, they are told later.
    case removalTold(SharedKey)
    /// Whether the streams are there.
    case begun
    /// What a stream is like.
    case streamState([UInt8])
    /// - Parameters:
    ///   - asked: when, in milliseconds of the monotonic clock.
    ///   - announced: the last purge of this gateway that had been written until then.
    case streams(asked: Int64, announced: UInt64)
    case members(@Sendable ([FleetMember]?) -> Void)
    case confirmations
    case published(@Sendable (Bool) -> Void)
    case policyVersion
    case policy(version: [UInt8])
    /// The body of the variant's predecessor.
    case predecessor(digest: [UInt8], successor: SharedToken?)
    /// The number of the generation.
    case generation
    case value(PendingLoad)
    case chunkOfLoad(PendingLoad, FoundValue, number: UInt32)
    case presence(PendingLoad, FoundValue)
    case chunkRead(id: Int64, SharedBody, SharedChunks, number: UInt32, ChunkCompletion)
    /// What is stored in the place of a lease; nothing if it was free, and is this gateway's now.
    case lease(LeaseWait)
    /// Whether a lease was still the own one when it was prolonged or ended.
    case leaseKept(digest: [UInt8], SharedToken)
    case barrier(@Sendable () -> Void)
    /// What the engine says about itself.
    case info
    /// - Parameter asked: when, in milliseconds since 1970.
    case time(asked: Int64)
    /// - Parameter deadline: when it counts as failed.
    case probe(deadline: Int64)
}

typealias ChunkCompletion = @Sendable (ChunkResult) -> Void
