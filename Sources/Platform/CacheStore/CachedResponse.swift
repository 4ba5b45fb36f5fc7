import CLinux
import CachePolicy
import HTTPCore
import Synchronization

/// A stored response: immutable, shared by all workers that serve it, freed with the last
/// reference.
///
/// Key, head and (below `CacheStoreOptions.memoryFileBytes`) body are in one allocation, head and
/// body adjacent, so that a hit is one copy or one vectored write.
public final class CachedResponse: @unchecked Sendable {
    /// The hash that the key was stored or loaded with (this process's).
    public let keyHash: UInt64
    /// Which requests it answers.
    public let varyKey: VaryKey
    /// Everything that a decision needs to know, derived from `head`; `bodyBytes` is set.
    public let metadata: StoredMetadata
    /// Fingerprint of the security policy under which it was obtained.
    public let policy: UInt64
    public let body: CachedBody

    @usableFromInline let block: BlockMemory
    @usableFromInline let keyCount: Int
    @usableFromInline let headCount: Int
    private let contiguousCount: Int

    /// The entry of the disk tier, which alone uses it. Set at most once, under the lock of its
    /// key's shard, which readers hold as well: the entry may be written when the response leaves
    /// memory.
    var token = IndexToken.none
    /// The purges that it is not about: those up to this serial. Changed under the lock of its
    /// key's shard, once others know of it.
    var born = UInt64.max
    /// Since when a soft purge has made it stale, in seconds since 1970; 0 if none has. Whoever
    /// makes metadata of its head again applies it (`StoredMetadata.stale(since:)`).
    public let staleSince: Int64
    /// Bytes of its chunks on disk, if it has any there.
    let chunkBytes: Int

    /// Until when nobody else revalidates it in the background, in seconds since 1970.
    private let claimedUntil = Atomic<Int64>(0)

    /// Its other forms, once somebody has asked for one.
    private let otherForms = AtomicLazyReference<StoredForms>()

    /// Takes ownership of `builder`'s memory.
    init(
        keyHash: UInt64, varyKey: VaryKey, metadata: StoredMetadata, policy: UInt64,
        block: consuming ResponseBlock, body: BodyStorage, chunkBytes: Int, staleSince: Int64 = 0
    ) {
        self.keyHash = keyHash
        self.staleSince = staleSince
        self.varyKey = varyKey
        self.policy = policy
        self.chunkBytes = chunkBytes
        keyCount = block.keyCount
        headCount = block.headCount
        contiguousCount = block.bodyCount
        self.block = block.take()
        var metadata = staleSince > 0 ? metadata.stale(since: staleSince) : metadata
        switch body {
        case .contiguous:
            let bytes = UnsafeRawBufferPointer(
                start: self.block.base + keyCount + headCount, count: contiguousCount)
            if metadata.flags.contains(.parts) {
                self.body = .parts(PartsBody(bytes))
            } else {
                self.body = .contiguous(BodyView(bytes: bytes))
                metadata.bodyBytes = UInt64(contiguousCount)
            }
        case .file(let file):
            self.body = .file(file)
            metadata.bodyBytes = UInt64(file.count)
        case .heap(let heap):
            self.body = .heap(heap)
            metadata.bodyBytes = UInt64(heap.count)
        case .disk(let disk):
            self.body = .disk(disk)
            metadata.bodyBytes = disk.count
        case .arriving(let body):
            self.body = .arriving(body)
            metadata.bodyBytes = body.expectedCount
        }
        self.metadata = metadata
    }

    /// Claims the right to revalidate it in the background: `true` for one caller at a time, on any
    /// thread. The claim ends at `end`, unless `endClaim` changes that.
    public func claim(now: Int64, until end: Int64) -> Bool {
        let current = claimedUntil.load(ordering: .relaxed)
        guard current <= now else { return false }
        return claimedUntil.compareExchange(
            expected: current, desired: end, ordering: .relaxed
        ).exchanged
    }

    /// Its forms other than the stored one.
    public var forms: StoredForms { otherForms.load() ?? otherForms.storeIfNil(StoredForms()) }

    /// Whether it has the same content as another response, in whatever forms.
    func sharesRenditions(with other: CachedResponse) -> Bool {
        guard let own = otherForms.load()?.renditions else { return false }
        return own === other.otherForms.load()?.renditions
    }

    /// Allows the next claim from `time` on.
    public func endClaim(at time: Int64) { claimedUntil.store(time, ordering: .relaxed) }

    /// The key's bytes, valid while this object lives.
    public var key: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block.base, count: keyCount)
    }

    /// The stored head, valid while this object lives.
    @inlinable public var head: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: block.base + keyCount, count: headCount)
    }

    /// Whether the body can only be read from a level below memory.
    public var isOnDiskOnly: Bool {
        if case .disk = body { return true }
        return false
    }

    /// Whether the body is read part by part.
    public var isReadInParts: Bool {
        switch body {
        case .contiguous, .file, .heap: false
        case .disk, .arriving, .parts: true
        }
    }

    /// The number of bytes of the content; the largest number if that is not known yet.
    public var contentCount: UInt64 { metadata.bodyBytes ?? .max }

    /// The number of bytes that are stored with it: of the body, or of the description of its
    /// parts.
    package var bodyCount: UInt64 {
        metadata.flags.contains(.parts) ? UInt64(contiguousCount) : contentCount
    }

    /// The bytes that follow the head in its own allocation.
    var ownBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: block.base + keyCount + headCount, count: contiguousCount)
    }

    /// The body in a form that can be shared with a successor; a contiguous one cannot be.
    var storage: BodyStorage {
        switch body {
        case .contiguous, .parts: .contiguous
        case .file(let file): .file(file)
        case .heap(let heap): .heap(heap)
        case .disk(let disk): .disk(disk)
        case .arriving(let body): .arriving(body)
        }
    }

    /// A response with another head and the same body; `nil` if there is no memory.
    func withHead(
        _ head: UnsafeRawBufferPointer, varyKey: VaryKey, metadata: StoredMetadata, policy: UInt64,
        staleSince: Int64 = 0
    ) -> CachedResponse? {
        let made = ResponseBlock(
            key: key, head: head, bodyCapacity: contiguousCount, heap: block.heap)
        guard var block = made else { return nil }
        guard block.append(ownBytes, limit: contiguousCount) else { return nil }
        let response = CachedResponse(
            keyHash: keyHash, varyKey: varyKey, metadata: metadata, policy: policy, block: block,
            body: storage, chunkBytes: chunkBytes, staleSince: staleSince)
        if let forms = otherForms.load() {
            _ = response.otherForms.storeIfNil(StoredForms(forms.renditions))
        }
        return response
    }

    /// The same response, stale from this second on at the latest; `nil` if there is no memory.
    func stale(since time: Int64) -> CachedResponse? {
        let since = max(1, staleSince > 0 ? min(staleSince, time) : time)
        let response = withHead(
            head, varyKey: varyKey, metadata: metadata, policy: policy, staleSince: since)
        response?.token = token
        response?.born = born
        return response
    }

    /// The same response with its body only in a level below memory; `nil` if there is no memory.
    func onDisk(_ body: LevelBody) -> CachedResponse? {
        let made = ResponseBlock(key: key, head: head, bodyCapacity: 0, heap: block.heap)
        guard let block = made else { return nil }
        return CachedResponse(
            keyHash: keyHash, varyKey: varyKey, metadata: metadata, policy: policy, block: block,
            body: .disk(body), chunkBytes: chunkBytes, staleSince: staleSince)
    }

    /// The same response with its body in parts, of which some may be stored; `nil` if there is no
    /// memory, or its length is not known.
    public func inParts(_ parts: PartsBody) -> CachedResponse? {
        guard metadata.bodyBytes != nil else { return nil }
        let bytes = parts.bytes
        let made = ResponseBlock(
            key: key, head: head, bodyCapacity: bytes.count, heap: block.heap)
        guard var block = made else { return nil }
        guard bytes.withUnsafeBytes({ block.append($0, limit: bytes.count) }) else { return nil }
        return CachedResponse(
            keyHash: keyHash, varyKey: varyKey, metadata: metadata.ofParts, policy: policy,
            block: block,
            body: .contiguous, chunkBytes: chunkBytes, staleSince: staleSince)
    }

    /// Bytes that it occupies in the memory tier, including overhead of the allocator and the
    /// table.
    var memoryBytes: Int {
        let renditions = otherForms.load()?.renditions.memoryBytes ?? 0
        let own = 328 + block.capacity + varyKey.bytes.count + renditions
        switch body {
        case .contiguous, .disk, .arriving, .parts: return own
        // Whole pages, plus the kernel's own memory for an open file.
        case .file(let file): return own + (file.count + 4095) & ~4095 + 1024
        case .heap(let heap): return own + heap.capacity + 64
        }
    }

    /// Whether it belongs to this key.
    @inline(__always)
    func isOf(_ hash: UInt64, _ bytes: UnsafeRawBufferPointer) -> Bool {
        guard keyHash == hash, keyCount == bytes.count else { return false }
        guard keyCount > 0, let other = bytes.baseAddress else { return true }
        return memcmp(block.base, other, keyCount) == 0
    }
}

/// The location of the body of a response under construction.
enum BodyStorage: Sendable {
    case contiguous
    case file(MemoryFile)
    case heap(HeapBody)
    case disk(LevelBody)
    case arriving(BodyUnderWay)
}
