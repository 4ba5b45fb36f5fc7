import CachePolicy
import CacheStore
import SharedCache

/// What is queued for the level's thread, in the order in which it is to be carried out.
enum SharedCommand: Sendable {
    /// - Parameter deadline: in milliseconds of the monotonic clock.
    case load(LevelLoad, StoreFlight, began: Int64, deadline: Int64)
    case store(SharedStore)
    /// Remove variants of a key.
    case forget(SharedKey, [SharedVariant])
    /// Remove all variants of a key, which are invalid, and tell all gateways.
    case remove(SharedKey)
    /// Remove all variants of a key from the engine alone.
    case discard(SharedKey)
    /// Tell all gateways what was purged here.
    /// - Parameter number: how many of these there were, with this one.
    case announce([FleetPurge], number: UInt64)
    case confirm(@Sendable (FleetReceipt) -> Void)
    case readMembers(@Sendable ([FleetMember]?) -> Void)
    case publishPolicy(SharedPolicy, @Sendable (Bool) -> Void)
    /// Add a chunk to a body that is not published.
    case addChunk(SharedBody, number: UInt32, ChunkBytes)
    /// Nobody needs the chunks of a body.
    case dropBody(SharedBody, chunks: UInt32, wasPublished: Bool)
    case readChunk(
        id: Int64, SharedBody, SharedChunks, number: UInt32,
        @Sendable (ChunkResult) -> Void)
    /// Look whether another gateway has fetched by now what is waited for.
    case lookAgain(LeaseWait, LevelLoad, StoreFlight)
    /// The fetch under a lease has ended.
    case endLease(digest: [UInt8], SharedToken, FetchLease.End)
    case barrier(@Sendable () -> Void)

    /// Bytes of a body in it.
    var bytes: Int {
        switch self {
        case .store(let store): store.bytes
        case .addChunk(_, _, let chunk): chunk.bytes.count
        case .load, .forget, .remove, .discard, .announce, .confirm, .readMembers, .publishPolicy,
            .dropBody,
            .readChunk, .lookAgain, .endLease,
            .barrier:
            0
        }
    }
}

/// A response to be stored.
struct SharedStore: Sendable {
    /// Its body.
    enum Body: Sendable {
        /// In memory.
        case whole
        /// Stored before, in chunks.
        case chunks(SharedBody, SharedChunks)
    }

    let response: CachedResponse
    let body: Body
    /// Up to this purge it is known not to be purged.
    let born: PurgePosition
    /// The last purge of this gateway that it is not about either.
    let announcement: UInt64
    /// How many numbers of keys had been learned (`LevelLoop.learn`).
    let learned: UInt64
    /// The variant that it replaces besides its own.
    var replaced: SharedVariant?
    /// By what the fingerprints of both differ in the engine (``SystemTrust``).
    let mark: UInt64

    var key: SharedKey { SharedKey(bytes: [UInt8](response.key), hash: response.keyHash) }
    var variant: SharedVariant { SharedVariant(response) }

    /// Bytes that it keeps in memory.
    var bytes: Int {
        switch body {
        case .whole: response.head.count + Int(clamping: response.bodyCount)
        case .chunks: response.head.count
        }
    }
}

/// One variant of a key: responses that were obtained under different trust do not replace each
/// other in the engine.
struct SharedVariant: Sendable, Equatable {
    let vary: VaryKey
    let trust: UInt64

    /// The name of its field; `nil` only if the library is out of memory.
    /// - Parameter mark: by what its fingerprint differs in the engine (``SystemTrust``).
    func field(marked mark: UInt64) -> [UInt8]? { SharedName.variant(vary, trust: trust ^ mark) }

    init(_ response: CachedResponse) {
        vary = response.varyKey
        trust = response.policy
    }
}

/// A body in chunks, by the digest of its key and its own identity.
struct SharedBody: Sendable, Hashable {
    let digest: [UInt8]
    let token: SharedToken
}

extension UnsafeRawBufferPointer {
    /// Whether it is the key of a part (`SliceKey`): no other has a zero byte.
    var isOfPart: Bool { count > 17 && self[count - 17] == 0 }
}

extension CachedResponse {
    /// A part of the body, copied; `nil` if it is not in memory.
    func copyBody(_ range: Range<Int>) -> [UInt8]? {
        switch body {
        case .contiguous(let view): return [UInt8](view.bytes[range])
        case .heap(let heap): return [UInt8](heap.bytes[range])
        case .parts(let parts): return Array(parts.bytes[range])
        case .file(let file):
            guard range.upperBound <= file.count else { return nil }
            var bytes = [UInt8](repeating: 0, count: range.count)
            let isRead = bytes.withUnsafeMutableBytes {
                $0.isEmpty || file.read(into: $0, at: range.lowerBound)
            }
            return isRead ? bytes : nil
        case .disk, .arriving: return nil
        }
    }

    /// Whether it is a part of a representation, or the head of one that is stored in parts: other
    /// gateways would have no use for one without the others.
    var isOfParts: Bool {
        metadata.flags.contains(.parts) || key.isOfPart
    }

    /// Whether the body is in memory, and complete.
    var isWholeInMemory: Bool {
        switch body {
        case .contiguous, .heap, .parts, .file: true
        case .disk, .arriving: false
        }
    }
}
